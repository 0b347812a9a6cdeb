"""Sending and receiving: what the functions of every version do."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.work import Work
from shim.frontends._paddle.arguments import peer_of
from shim.frontends._paddle.groups.group_views import group_of
from shim.frontends._paddle.tasks import Task, finish

__all__ = ["prepared_receive", "prepared_send", "receive_from", "send_to"]


def prepared_send(caller: Caller, tensor: Any, dst: Any, group: Any) -> Work:
    """Prepare to send *tensor* to the world's rank *dst*."""
    return calls.send(caller, group_of(caller, group), tensor, peer_of(caller, group, dst))


def prepared_receive(caller: Caller, tensor: Any, src: Any, group: Any) -> Work:
    """Prepare to receive into *tensor* what the world's rank *src* sends."""
    return calls.receive(caller, group_of(caller, group), tensor, peer_of(caller, group, src))


def send_to(caller: Caller, tensor: Any, dst: Any, group: Any, sync_op: bool) -> Task | None:
    """Send *tensor* to the world's rank *dst*."""
    members = group_of(caller, group)
    return finish(calls.send(caller, members, tensor, peer_of(caller, group, dst), 0, bool(sync_op)), sync_op, group)


def receive_from(caller: Caller, tensor: Any, src: Any, group: Any, sync_op: bool) -> Task | None:
    """Receive into *tensor* what the world's rank *src* sends."""
    members = group_of(caller, group)
    return finish(calls.receive(caller, members, tensor, peer_of(caller, group, src), 0, bool(sync_op)), sync_op, group)
