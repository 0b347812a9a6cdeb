"""What the ranks of a rehearsal have in common: what it is of, and the modules that the program imports, which all find imported."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from shim.core.job.variables import REHEARSED

_FRONTENDS = {  # of what a program may have imported as it is installed
    "torch": "shim.frontends.torch.distributed",
    "paddle": "shim.frontends.paddle_3.distributed",
    "mindspore": "shim.frontends.mindspore.mint.distributed",
}


@dataclass(frozen=True)
class Plan:
    """A rehearsal of *size* ranks, of which *ranks* are run; *per_host* are on a host each.

    *program* is the script, or the module where *is_module*, and its arguments; *folder* gets the recordings, and what each rank prints.
    A rank that takes longer than *timeout* seconds is ended. With *as_installed* the frameworks' own modules are the frontends, *without_memory* gives torch's
    tensors none.
    """

    program: Sequence[str]
    size: int
    ranks: Sequence[int]
    per_host: int
    folder: Path
    is_module: bool = False
    as_installed: bool = False
    without_memory: bool = False
    timeout: float = 300.0
    digest_key: str = field(default_factory=lambda: str(secrets.randbits(64) | 1))  # of what ranks pass

    @property
    def at_once(self) -> int:
        """How many ranks run at a time."""
        return len(os.sched_getaffinity(0))

    @property
    def values(self) -> Path:
        """The folder of what calls have passed, by digest."""
        return self.folder / "values"

    def output_of(self, rank: int) -> Path:
        return self.folder / f"rank{rank}.out"


def prepare(plan: Plan) -> None:
    """Import what the ranks of *plan* are to find imported. Call it once, in the process of which they are copies.

    What the imports print goes to stderr: stdout is the report's.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    os.environ[REHEARSED] = str(plan.size)  # for what is registered when a framework is imported
    if plan.as_installed:
        os.environ.setdefault("SHIM_TORCH_BACKEND", "0")
    sys.path.insert(0, "" if plan.is_module else str(Path(plan.program[0]).resolve().parent))
    with redirect_stdout(sys.stderr):
        _import_what_ranks_need(plan)
        for name in imports_of(plan):
            with suppress(Exception):  # the program's own import will say it
                importlib.import_module(name)
        _import_what_frameworks_need(plan)
    gc.collect()
    gc.freeze()  # what the ranks have in common is not to be looked at, and so copied, by each


def _import_what_ranks_need(plan: Plan) -> None:
    own = ["shim.core.groups", "shim.core.engines.recording.calls", "shim.core.engines.rehearsal.engine"]
    if plan.without_memory:
        own.append("shim.rehearsal.without_memory")
    if plan.as_installed:
        own.append("shim.substitution.program")
    for name in own:
        importlib.import_module(name)


def _import_what_frameworks_need(plan: Plan) -> None:
    if "torch" in sys.modules:
        importlib.import_module("torch._dynamo")  # for which optimizers, DDP and FSDP would take seconds on each rank
    for name in _FRONTENDS if plan.as_installed else ():
        if name in sys.modules:
            importlib.import_module(_FRONTENDS[name])


def imports_of(plan: Plan) -> list[str]:
    """Return the modules that the program's own file imports and that are installed."""
    path = _path_of(plan)
    if path is None:
        return []
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []  # the ranks will say it
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module and not node.level
    ]
    return [name for name in dict.fromkeys(names) if _is_installed(name.partition(".")[0])]


def _path_of(plan: Plan) -> Path | None:
    """Return the file that is run. No package is imported for that: it may ask at once which rank it is."""
    if not plan.is_module:
        return Path(plan.program[0])
    places: Sequence[str] | None = None
    found = None
    name = ""
    for part in [*plan.program[0].split("."), "__main__"]:
        if name and places is None:  # which is no package
            break
        name = f"{name}.{part}" if name else part
        found = PathFinder.find_spec(name, places)
        if found is None:
            return None
        places = found.submodule_search_locations
    return None if found is None or found.origin is None else Path(found.origin)


def _is_installed(root: str) -> bool:
    """Tell whether the package *root* is Python's, or lies where packages are installed. Others may ask at once which rank they are."""
    if root in sys.stdlib_module_names:
        return True
    with suppress(ImportError, ValueError):
        found = importlib.util.find_spec(root)
        places = [] if found is None else [found.origin, *(found.submodule_search_locations or ())]
        folders = {folder for place in filter(None, places) for folder in Path(place).parents}
        return any(any(folder.glob("*.dist-info")) for folder in folders)
    return False
