"""Debugging and profiling, at torch's signatures."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NewType

from shim.frontends.torch import _breakpoints
from shim.frontends.torch._errors import torch_function

GroupName = NewType("GroupName", str)
_BREAKPOINT = torch_function("breakpoint")


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
    """Stop in a debugger on the world's *rank*, from the visit after *skip* on; the others wait *timeout_s* seconds for it.

    Raises: DistStoreError when that time passes (None: no limit).
    Deviates: *skip* counts the visits of each call separately; torch counts those of all calls together.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.breakpoint
    """
    _breakpoints.stop(_BREAKPOINT, rank, skip, timeout_s)


def record_comm(name: str) -> AbstractContextManager[None]:
    """Return a context whose collectives torch's profiler shows under *name*.

    Deviates: the profiler shows one range for all of them; torch shows one for each.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.distributed_c10d.record_comm
    """
    return _breakpoints.Recorded(name)
