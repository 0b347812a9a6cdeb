"""Runs a program on a rank of this test, and returns what it called, as ``shim port --verify`` records it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from shim.trace.calls import Recording
from shim.trace.differences import compare
from shim.trace.reading import read_recording


class Runs:
    """Records several runs of this rank one after the other, into one file in *folder*."""

    def __init__(self, folder: str, rank: int) -> None:
        self._folder = Path(
            folder, f"of-rank-{rank}"
        )  # a rank reads what it has written itself, whatever the others are doing
        self._rank = rank
        self._before = 0

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Recording]]:
        """Record what is called inside; the list has it afterwards."""
        found: list[Recording] = []
        with mock.patch.dict(os.environ, SHIM_TRACE=str(self._folder), SHIM_TRACE_DIGESTS="1"):
            yield found
        whole = read_recording(self._folder)
        mine = whole.ranks[self._rank]
        found.append(
            dataclasses.replace(whole, ranks={self._rank: dataclasses.replace(mine, calls=mine.calls[self._before :])})
        )
        self._before = len(mine.calls)

    def run_script(self, text: str, name: str) -> tuple[str, Recording]:
        """Run the *text* of a script, and return what it printed and called."""
        out, before = io.StringIO(), sys.modules["__main__"]
        main = types.ModuleType("__main__")  # so that the classes of objects that the script sends can be found
        try:
            sys.modules["__main__"] = main
            with mock.patch.object(sys, "argv", [name]), self.recording() as found, contextlib.redirect_stdout(out):
                exec(compile(text, name, "exec"), main.__dict__)
        finally:
            sys.modules["__main__"] = before
        return out.getvalue(), found[0]


def assert_equal_calls(one: Recording, other: Recording, what: object) -> int:
    """Assert that both have the same calls with the same values; return how many."""
    outcome = compare(one, other)
    assert not outcome.differences, (what, outcome.differences[0].number, outcome.differences[0].whats)
    return outcome.equal
