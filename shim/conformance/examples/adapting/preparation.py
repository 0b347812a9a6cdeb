"""What documents leave to their readers: the world, and names that the code takes as given. Declared here, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from shim.conformance.examples.example import Example

__all__ = ["PREAMBLE", "begin_of", "names_of", "variables_of"]

# Code that runs before an example, in its names. PyTorch's examples leave the imports and the initialisation to the reader.
PREAMBLE: Mapping[str, str] = {
    "torch": """
import torch
import torch.distributed as dist
from datetime import timedelta
""",
    "paddle": "",
    "mindspore": "",
}
# MindSpore's documents ask the reader to start their examples with msrun, which sets these.
_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "mindspore": {"RANK_ID": "{rank}", "RANK_SIZE": "{size}", "DEVICE_ID": "{rank}"},
}
# Names that documents use and leave to the reader, with values that fit what is said of them.
_GIVEN: Mapping[str, Mapping[str, str]] = {
    "torch": {
        "ReduceOp": "dist.ReduceOp",
        "num_colls": "2",
        "tensors": "[torch.ones(2) * (rank + 1) for _ in range(2)]",
        "pg": "dist.group.WORLD",
        "input": "torch.ones(2) * (rank + 1)",
        "output": "torch.zeros(2 * world_size)",
    },
}
_BEGIN = {
    "torch": """
if not dist.is_initialized():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
rank, world_size = dist.get_rank(), dist.get_world_size()
""",
}
_INITIALISES = {"torch": ("init_process_group", "Store(")}


def begin_of(example: Example) -> str:
    """Return the code that puts *example* into the world, unless it does so itself."""
    itself = any(call in step.source for call in _INITIALISES.get(example.framework, ()) for step in example.steps)
    return "" if itself else _BEGIN.get(example.framework, "")


def names_of(example: Example) -> str:
    """Return code for the names that *example* uses and does not bind: those left to the reader, and what the document is about."""
    nodes = [node for step in example.steps for node in ast.walk(ast.parse(step.source)) if isinstance(node, ast.Name)]
    bound = {node.id for node in nodes if not isinstance(node.ctx, ast.Load)}
    used = {node.id for node in nodes} - bound
    given = _GIVEN.get(example.framework, {})
    return _own_name(example) + "".join(f"{name} = {value}\n" for name, value in given.items() if name in used)


def _own_name(example: Example) -> str:
    module, _, name = example.function.rpartition(".")
    if any(
        name in step.source and f".{name}" not in step.source and "import" not in step.source for step in example.steps
    ):
        return f"from {module} import {name}\n"
    return ""


def variables_of(example: Example, rank: int) -> dict[str, str]:
    """Return the environment variables that *rank* of *example* gets from the launcher that its documents ask for."""
    variables = _VARIABLES.get(example.framework, {})
    return {name: value.format(rank=rank, size=example.ranks) for name, value in variables.items()}
