"""Waiting for the other ranks, and for what runs in the background."""

from __future__ import annotations

from typing import Any

from shim.core import calls, tensors
from shim.core.callers import Caller
from shim.errors import ShimError
from shim.frontends._paddle.errors import ArgumentTypeError
from shim.frontends._paddle.groups.group_views import group_of, member_of
from shim.frontends._paddle.tasks import settle

__all__ = ["meet", "settled"]


def meet(caller: Caller, group: Any) -> None:
    """Wait for the other ranks of *group*; as in paddle, a process outside it returns without a warning."""
    members = group_of(caller, group)
    if members.rank >= 0:
        calls.barrier(caller, members).wait()


def settled(caller: Caller, tensor: Any, group: Any, use_calc_stream: Any) -> None:
    """Wait until everything that was started in *group* has ended; a process outside it returns at once."""
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
