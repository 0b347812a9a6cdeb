"""Blocks of calls that begin together, at torch's signatures."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NoReturn

from shim.errors import UnsupportedError
from shim.frontends.torch._calls.coalescing_blocks import BLOCK, _Block, _CoalescingManager, refuse_block_device
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._groups.process_group import ProcessGroup

__all__ = ["_coalescing_manager", "_time_estimator"]

_ESTIMATOR = torch_function("_time_estimator")


def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> AbstractContextManager[_CoalescingManager]:
    """Make a block whose all_reduce, all_gather_single or reduce_scatter_single calls of *group* run together.

    They begin at its end, when all ranks are there, and have ended after it or, when *async_ops*, the ``wait`` of what it binds.
    A block without calls takes no part. One that an error ends begins none of them.
    Raises: UnsupportedError for a *device*; RuntimeError after the block for calls of several kinds.
    """
    refuse_block_device(device)
    return _Block(group_of(BLOCK, group), async_ops)


def _time_estimator(group: ProcessGroup | None = None, device: Any = None) -> NoReturn:
    """Refuse to estimate how long calls of *group* on *device* would take. Raises: UnsupportedError, always."""
    members = group_of(_ESTIMATOR, group)
    raise _ESTIMATOR.explain(
        UnsupportedError(f"the torch frontend's engines carry calls out and estimate none, device {device!r}"), members
    )


between_graphs(globals(), __all__)
