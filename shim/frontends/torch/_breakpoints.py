"""Stopping in one rank for a debugger, and naming a stretch of communication for a profiler."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import timedelta
from types import TracebackType
from typing import Any

from shim.core.callers import Caller
from shim.frontends.torch._groups import registry
from shim.frontends.torch._stores.store_barrier import barrier_at

_A_LONG_TIME = timedelta(days=3650)
_visits: Counter[tuple[str, int]] = Counter()
_stops: Counter[str] = Counter()


def stop(caller: Caller, rank: int, skip: int, timeout_s: float | None) -> None:
    """Do what ``breakpoint`` documents. The ranks wait for each other at the store, where no collective can time out."""
    frame = sys._getframe(2)
    place = (frame.f_code.co_filename, frame.f_lineno)
    _visits[place] += 1
    if _visits[place] <= skip:
        return
    world = registry.world_of(caller)
    store = registry.store_of(caller, world)
    if world.core.rank == rank:
        debugger = _debugger()
        debugger.message(f"\nType 'up' three times to get to the call of breakpoint in {place[0]}:{place[1]}\n")
        debugger.set_trace()
    _stops[world.group_name] += 1
    name = f"breakpoint {_stops[world.group_name]}"
    limit = _A_LONG_TIME if timeout_s is None else timedelta(seconds=timeout_s)
    barrier_at(caller, world.core.rank, store, name, world.core.size, limit, timedelta(seconds=10))


def _debugger() -> Any:
    """Return a debugger that talks to the terminal, although a process that another started has no input from it."""
    import pdb  # which takes longer to import than all of this package

    class Debugger(pdb.Pdb):
        def interaction(self, *arguments: Any, **options: Any) -> None:
            before = sys.stdin
            try:
                with open("/dev/stdin") as sys.stdin:
                    super().interaction(*arguments, **options)
            finally:
                sys.stdin = before

    return Debugger()


class Recorded:
    """A stretch of a program that torch's profiler shows under *name*, where torch is imported."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._range: Any = None

    def __enter__(self) -> None:
        torch = sys.modules.get("torch")
        if torch is not None:
            self._range = torch.profiler.record_function(self.name)
            self._range.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._range is not None:
            self._range.__exit__(kind, error, trace)
