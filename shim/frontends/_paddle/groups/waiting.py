"""Waiting for the other ranks, and for what runs in the background."""

from __future__ import annotations

import sys
from typing import Any

from shim.core import calls, tensors
from shim.core.callers import Caller
from shim.errors import ShimError
from shim.frontends._paddle.errors import ArgumentTypeError
from shim.frontends._paddle.groups.group_views import group_of, member_of
from shim.frontends._paddle.tasks import settle

__all__ = ["meet", "settled"]


def meet(caller: Caller, group: Any) -> None:
    """Wait for the other ranks of *group*, and for what they put on their devices; as in paddle, a process outside it returns without a warning."""
    members = group_of(caller, group)
    if members.rank >= 0:
        _finish_device()
        calls.barrier(caller, members).wait()


def settled(caller: Caller, tensor: Any, group: Any, use_calc_stream: Any) -> None:
    """Wait until everything that was started in *group* has ended, on a device too; a process outside it returns at once."""
    view = member_of(caller, group)
    if not view.is_member():
        return
    if not isinstance(use_calc_stream, bool):
        raise caller.explain(ArgumentTypeError(f"use_calc_stream must be a bool, got {use_calc_stream!r}"))
    try:
        tensors.reader_for(type(tensor))
    except ShimError as error:
        raise caller.explain(ArgumentTypeError(str(error).replace("{role}", "{input}"))) from None
    settle(view.id)
    _finish_device()


def _finish_device() -> None:
    """Wait for what is on the device that Paddle uses, where it is not the CPU: all its streams, as Paddle's own barrier does."""
    paddle = sys.modules.get("paddle")
    if paddle is not None and not paddle.framework._current_expected_place().is_cpu_place():
        paddle.device.synchronize()
