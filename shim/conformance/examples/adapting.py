"""What an example finds on this machine that its document takes as given, and what is changed in it for that; each change is told.

Only the runner does so, never ``as_installed`` in a user's program: there a ``.cuda()`` that cannot work fails as ever. That is: devices that are not there, places that all programs share (a port, a file in /tmp), what is left to the reader (the world,
names taken as given), and what is around a program while it runs and is put back after it.
"""

from __future__ import annotations

import ast
import contextlib
import os
import random
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from shim.conformance.examples.example import Example
from shim.conformance.kinds import is_installed
from shim.substitution.mirrors import FRAMEWORKS


class Rule(NamedTuple):
    """``pattern`` in the code of *framework*'s examples becomes ``replacement``; ``why`` is told with the result."""

    framework: str
    pattern: re.Pattern[str]
    replacement: str
    why: str


RULES = (
    Rule(
        "torch",
        re.compile(r"torch\.device\(f?([\"'])cuda(:\{?\w+\}?)?\1\)"),
        'torch.device("cpu")',
        "the GPU's device is the CPU here",
    ),
    Rule("torch", re.compile(r"\bdevice=rank\b"), 'device="cpu"', "the rank's GPU is the CPU here"),
    Rule(
        "torch",
        re.compile(r"\bnew_subgroups\(\)"),
        "new_subgroups(dist.get_world_size())",
        "the machine has as many ranks here as it would have GPUs",
    ),
    Rule("torch", re.compile(r"\btorch\.cuda\.set_device\([^)\n]*\)"), "None", "no GPU is chosen here"),
    Rule("torch", re.compile(r"\.cuda\([^)\n]*\)"), "", "tensors stay on the CPU here"),
    Rule(
        "paddle",
        re.compile(r"(set_device\()\s*f?([\"'])gpu[^\"']*\2"),
        r"\1'cpu'",
        "the GPU's place is the CPU's here",
    ),
    Rule(
        "mindspore",
        re.compile(r"(set_device\(\s*(?:device_target\s*=\s*)?)([\"'])(Ascend|GPU)\2"),
        r"\1'CPU'",
        "Ascend's device is the CPU here",
    ),
    Rule(
        "mindspore",
        re.compile(r"(device_target\s*=\s*)([\"'])(Ascend|GPU)\2"),
        r"\1'CPU'",
        "Ascend's device is the CPU here",
    ),
)


def rewritten(framework: str, source: str) -> tuple[str, list[str]]:
    """Return *source* as this machine can run it, and why it was changed."""
    reasons = []
    for rule in RULES:
        if rule.framework == framework:
            source, changes = rule.pattern.subn(rule.replacement, source)
            reasons += [rule.why] if changes else []
    return source, reasons


WHY_A_FOLDER = "the file that its ranks meet at lies in a folder of its own here, not in /tmp"
WHY_A_PORT = "the port that its ranks meet at is a free one here"
_FOLDER = re.compile(r"(\bFileStore\(\s*[\"']|\bfile://)/tmp(?=/)")
_PORT = re.compile(r"(\bTCPStore\(\s*[\"'][\w.]+[\"'],\s*|\btcp://[\w.]+:)(\d{4,5})\b")
_PORTS = range(20000, 30000)  # below those that the kernel gives to connections, which would take one before it is used


@contextlib.contextmanager
def in_its_own_place(example: Example) -> Iterator[tuple[Example, tuple[str, ...]]]:
    """Give *example* as it can run beside others, and why it was changed; its place is there until the block ends."""
    ports: dict[str, str] = {}
    reasons: dict[str, None] = {}

    def own_port(found: re.Match[str]) -> str:
        reasons[WHY_A_PORT] = None
        if found[2] not in ports:
            ports[found[2]] = str(free_ports(1)[0])
        return found[1] + ports[found[2]]

    def own_folder(own: str, found: re.Match[str]) -> str:
        reasons[WHY_A_FOLDER] = None
        return found[1] + own

    with tempfile.TemporaryDirectory(prefix="shim-example-") as own:
        steps = tuple(
            replace(step, source=_PORT.sub(own_port, _FOLDER.sub(partial(own_folder, own), step.source)))
            for step in example.steps
        )
        yield replace(example, steps=steps), tuple(reasons)


def free_ports(count: int) -> list[int]:
    """Return different ports of this machine that nobody listens at."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    raise OSError(f"this machine has no {count} free ports from {_PORTS.start} to {_PORTS.stop - 1}")


# Code that runs before an example, in its names. PyTorch's examples leave the imports and the initialisation to the reader.
_PREAMBLE = {
    "torch": """
import torch
import torch.distributed as dist
from datetime import timedelta
""",
}
_PREAMBLE_WITHOUT = {  # where the framework is not installed
    "torch": """
import shim.frontends.torch.distributed as dist
from datetime import timedelta
""",
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


def preamble_of(example: Example) -> str:
    """Return the imports that *example* leaves to the reader."""
    return (_PREAMBLE if is_installed(example.framework) else _PREAMBLE_WITHOUT).get(example.framework, "")


def needed_frameworks(example: Example) -> set[str]:
    """Return the frameworks that the code of *example* uses itself, beside a frontend or not."""
    code = "\n".join((names_of(example), *(step.source for step in example.steps)))
    used: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            used |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Name):
            used.add(node.id)
    return used & {*FRAMEWORKS}


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


@contextlib.contextmanager
def as_program(example: Example, variables: Mapping[str, str], built: dict[str, Any]) -> Iterator[ModuleType]:
    """Make *example* the program of this process and give its module, whose builtins are *built*; run nothing of it.

    The module's file lies in a folder of its own, so that ``inspect`` finds the source of its classes, as MindSpore's compiler does.
    """
    module, main, folder = ModuleType("__main__"), sys.modules["__main__"], os.getcwd()
    before, path = dict(os.environ), list(sys.path)
    with tempfile.TemporaryDirectory(prefix="shim-example-") as own:
        file = Path(own) / f"{Path(example.name).name.removesuffix('.py')}.py"
        file.write_text(_program(example), encoding="utf-8")
        module.__file__ = str(file)
        module.__dict__["__builtins__"] = built
        sys.modules["__main__"] = module
        os.environ.update(variables)
        os.chdir(own)
        if example.folder:
            sys.path.insert(0, example.folder)
        try:
            yield module
        finally:
            os.chdir(folder)
            sys.path[:] = path
            sys.modules["__main__"] = main
            for name in set(os.environ) - set(before):
                del os.environ[name]
            os.environ.update(before)


def _program(example: Example) -> str:
    """Return the example's code with each statement on its line in the document, as it runs on this machine."""
    lines: list[str] = []
    for step in example.steps:
        lines += [""] * (step.line - 1 - len(lines))
        lines[step.line - 1 :] = rewritten(example.framework, step.source)[0].splitlines()
    return "\n".join([*lines, ""])
