"""What a rank does for ``%%ranks``: run a cell in a ``__main__`` that is kept for the next one, and tell how it ended."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import re
import signal
import sys
import time
import traceback
import types
from typing import NamedTuple

from shim.errors import UnsupportedError
from shim.launch.endings import came_of_another
from shim.launch.output import without_our_frames

_MAIN = types.ModuleType("__main__")
_LONGEST_LINE = 5000  # characters of a line of an error that are shown


class Raised(NamedTuple):
    """What a cell raised on a rank."""

    headline: str  # "ValueError: the message's first line"
    traceback: tuple[str, ...] = ()  # lines
    when: float = 0.0  # in seconds of time.monotonic, which is one clock for all ranks
    is_interrupt: bool = False
    is_victim: bool = False  # it was raised because of another rank's failure


class Ending(NamedTuple):
    """How a cell ended on a rank, and which groups can no longer be used there."""

    raised: Raised | None
    unusable_groups: tuple[str, ...]


def run_cell(source: str, name: str) -> Ending:
    """Run *source*, whose lines tracebacks show under *name*, and print the value of an expression at its end. SIGINT interrupts it."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # a kernel is interrupted by a signal to its whole process group
    sys.modules["__main__"] = _MAIN
    builtins.input = _no_input
    raised = None
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _execute(source, name)
        except BaseException as error:  # the cell's own exit is its error, not the end of the process
            raised = _raised(error, name)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt as late:  # it came when the cell had ended
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raised = _raised(late.__context__ or late, name)
    return Ending(raised, _unusable_groups())


def _execute(source: str, name: str) -> None:
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    program = ast.parse(source, name)
    shown: list[ast.stmt] = []
    if program.body and isinstance(program.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        shown = [program.body.pop()]
    exec(compile(program, name, "exec", dont_inherit=True), _MAIN.__dict__)
    exec(compile(ast.Interactive(shown), name, "single", dont_inherit=True), _MAIN.__dict__)


def _no_input(prompt: object = "", /) -> str:
    raise UnsupportedError("input: a rank of a notebook has nobody to ask; assign the value in the cell")


def _raised(error: BaseException, name: str) -> Raised:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != name:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames)).rstrip("\n")
    lines = without_our_frames(text.encode(errors="surrogateescape").split(b"\n"))
    named = "".join(traceback.format_exception_only(type(error), error)).split("\n")
    return Raised(
        # A SyntaxError's place comes first. A class is named without its module.
        _cut(re.sub(r"^[\w.]+\.", "", next(line for line in named if not line.startswith(" ")))),
        tuple(_cut(line.decode(errors="surrogateescape")) for line in lines),
        time.monotonic(),
        isinstance(error, KeyboardInterrupt),
        came_of_another(error),
    )


def _cut(line: str) -> str:
    left_out = len(line) - _LONGEST_LINE
    return line if left_out <= 0 else f"{line[:_LONGEST_LINE]}... ({left_out} more characters)"


def _unusable_groups() -> tuple[str, ...]:
    groups = sys.modules.get("shim.core.groups")
    if groups is None:
        return ()
    mine = [group for group in groups.all_groups() if group.rank >= 0 and group.is_alive]
    return tuple(group.name for group in mine if not group.engine.is_usable())
