"""The questions about the world that an installed framework's modules offer: their functions that can be called without arguments and are named as questions."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

# Where the frameworks' distributed and parallel modules are.
FOLDERS = {
    "torch": ("distributed", "nn/parallel"),
    "paddle": ("distributed",),
    "mindspore": ("communication", "parallel", "mint/distributed", "ops/communication.py", "context.py"),
}
_QUESTION = re.compile(
    r"_*(are|can|check|current|default|get|has|have|in|is|need|query|should|use|wait_all|world)(_|$)"
)
# Modules of machine code that are asked too.
_BUILT = {"torch": ("torch._C._distributed_c10d",)}
# Where importing starts something else than the module, the function waits, or it tells of the machine and not of the world.
_LEFT_OUT = re.compile(
    r"(\.examples?|\.benchmarks?|__main__|\.launch)(\.|$)|_(usage|logger|logging)|wait_all_comm_init"
    r"|_comm_helper:_is_mpi_available|_get_addr_infos|host_?name|get_free_port|get_socket"
)


def questions_of(framework: str) -> list[str]:
    """Return the questions of the installed *framework* as ``module:function``, read from its files without importing them, but for machine code."""
    spec = importlib.util.find_spec(framework)
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    files = (file for folder in FOLDERS[framework] for file in _files(root / folder))
    built = map(importlib.import_module, _BUILT.get(framework, ()))
    of_built = (f"{module.__name__}:{name}" for module in built for name in dir(module) if _QUESTION.match(name))
    return sorted({*of_built, *(question for file in files for question in _questions_in(root, file))})


def _files(place: Path) -> Iterator[Path]:
    return iter([place]) if place.suffix else place.rglob("*.py")


def _questions_in(root: Path, file: Path) -> Iterator[str]:
    module = ".".join(file.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and _QUESTION.match(node.name) and _needs_nothing(node.args):
            question = f"{module}:{node.name}"
            if not _LEFT_OUT.search(question):
                yield question


def _needs_nothing(arguments: ast.arguments) -> bool:
    """Tell whether a function with *arguments* can be called with none."""
    given = len(arguments.posonlyargs) + len(arguments.args)
    return given == len(arguments.defaults) and None not in arguments.kw_defaults
