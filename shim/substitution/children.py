"""Has the processes that a substituted program starts with ``multiprocessing`` run it with views as well.

A process that is spawned imports its parent's program again, to find the functions that it is to call. What it is told of that program is made
by ``multiprocessing.spawn.get_preparation_data``, which this module replaces in the program's own process: so the program is run again by
``shim.substitution.again``, in place of Python's own way. A forked process has its views from its parent.
"""

from __future__ import annotations

from multiprocessing import spawn
from typing import Any

__all__ = ["Program", "of_parent", "substitute_in_children"]

_AGAIN = "shim.substitution.again"

_prepare = spawn.get_preparation_data
_program: Program | None = None


class Program:
    """The program of this process or of its parent: the file *path*, or what ``-m`` found as the module *name*.

    It comes to a spawned process by pickle, before the process imports what its functions need, and leaves word there.
    """

    def __init__(self, path: str, name: str | None) -> None:
        self.path = path
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _remembered, (self.path, self.name)


def _remembered(path: str, name: str | None) -> Program:
    global _program
    _program = Program(path, name)
    return _program


def of_parent() -> Program:
    """Return the program of the process that has spawned this one."""
    assert _program is not None, "only a spawned process has the program of its parent"
    return _program


def substitute_in_children(program: Program) -> None:
    """From here on the processes that this one spawns run *program* with views, and so do theirs."""

    def prepare(name: str) -> dict[str, Any]:
        data: dict[str, Any] = _prepare(name)
        if data.pop("init_main_from_path", None) or data.pop("init_main_from_name", None):
            data["init_main_from_name"] = _AGAIN
            data["shim_program"] = program
        return data

    spawn.get_preparation_data = prepare
