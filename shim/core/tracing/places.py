"""Where in the program a call was made: the innermost line that is neither of this package nor of torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import NamedTuple

_PROGRAM, _BETWEEN, INTERNAL, OBJECTS, _WRAPPER = 0, 1, 2, 4, 8  # kinds of modules
_KINDS: dict[str | None, int] = {}
_PACKAGES = ["shim.core", "shim.frontends", "shim.substitution", "shim.testing.expected_errors", "torch"]
_INTERNAL = ("shim.core.groups", "shim.testing.expected_errors")  # what the ranks agree on by themselves


class Place(NamedTuple):
    """Where a call comes from: the *program*'s frame, the frame of the *function* that it has called, and the kinds of the modules between.

    Either is None where there is none.
    """

    program: FrameType | None
    function: FrameType | None
    kinds: int

    def text(self) -> str:
        """Return the line as error messages show it."""
        if self.program is None:
            return ""
        code = self.program.f_code
        return f"{code.co_filename}:{self.program.f_lineno}" + (
            "" if code.co_name == "<module>" else f" in {code.co_name}"
        )

    def function_name(self) -> str:
        """Return the function that the program has called, by its framework's name and path, without private modules."""
        if self.function is None:
            return ""
        module = str(self.function.f_globals.get("__name__", "")).removeprefix("shim.frontends.")
        framework, *path = module.split(".")
        if framework == "_paddle":  # both versions have the function at one path
            path = ["distributed", *(part for part in path if part == "stream")]
        parts = [framework.removeprefix("_"), *(part for part in path if not part.startswith("_"))]
        return ".".join([*parts, self.function.f_code.co_name])


def place_of_caller(depth: int) -> tuple[FrameType | None, FrameType | None, int]:
    """Return the fields of the ``Place`` from which the frame *depth* above this function's caller was reached."""
    frame: FrameType | None = sys._getframe(depth + 1)
    function, kinds = None, 0
    while frame is not None:
        name = frame.f_globals.get("__name__")
        try:
            kind = _KINDS[name]
        except KeyError:
            kind = _KINDS[name] = _kind_of(str(name))
        if kind == _PROGRAM:
            break
        kinds |= kind
        if kind != _WRAPPER:
            function = frame
        frame = frame.f_back
    return frame, function, kinds


def see_through(package: str) -> None:
    """Have no line of *package* be taken for one of the program."""
    _PACKAGES.append(package)
    _KINDS.clear()


def _kind_of(module: str) -> int:
    if module == "torch.distributed.c10d_logger":  # a decorator of torch's functions
        return _WRAPPER
    if _is_in(module, _INTERNAL):
        return _BETWEEN | INTERNAL
    if module == "shim.core.objects":
        return _BETWEEN | OBJECTS
    return _BETWEEN if module == "shim" or _is_in(module, _PACKAGES) else _PROGRAM


def _is_in(module: str, packages: Sequence[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
