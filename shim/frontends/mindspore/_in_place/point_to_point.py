"""Sending and receiving. Peers are ranks of the world.

Wrong arguments are raised on the calling rank alone: its peer is in no collective that could be told.
What is sent takes no gradient along, so it is refused if one is being recorded to which it belongs.
"""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import Work, finish
from shim.errors import UnsupportedError
from shim.frontends.mindspore._arguments import group_of, peer_of, tag_of
from shim.frontends.mindspore._gradients.recording import is_recorded
from shim.frontends.mindspore._handles import CommHandle


def send(caller: Caller, tensor: Any, dst: int, group: str | None, tag: int) -> None:
    """Send *tensor* to *dst*."""
    _sending(caller, tensor, dst, group, tag, True)


def isend(caller: Caller, tensor: Any, dst: int, group: str | None, tag: int) -> CommHandle:
    """Send *tensor* to *dst* in the background."""
    return CommHandle(finish(_sending(caller, tensor, dst, group, tag), True))


def recv(caller: Caller, tensor: Any, src: int, group: str | None, tag: int) -> int:
    """Receive *tensor* from *src* and return 0."""
    _receiving(caller, tensor, src, group, tag, True)
    return 0


def irecv(caller: Caller, tensor: Any, src: int, group: str | None, tag: int) -> CommHandle:
    """Receive *tensor* from *src* in the background."""
    return CommHandle(finish(_receiving(caller, tensor, src, group, tag), True))


def _sending(caller: Caller, tensor: Any, dst: int, group: str | None, tag: int, now: bool = False) -> Work:
    found = group_of(caller, group)
    peer, number = peer_of(caller, found, dst), tag_of(caller, found, tag)
    refuse_gradient_of_sent(caller, found, tensor)
    return calls.send(caller, found, tensor, peer, number, now)


def _receiving(caller: Caller, tensor: Any, src: int, group: str | None, tag: int, now: bool = False) -> Work:
    found = group_of(caller, group)
    peer, number = peer_of(caller, found, src), tag_of(caller, found, tag)
    refuse_history(caller, found, tensor)
    return calls.receive(caller, found, tensor, peer, number, now)


def refuse_gradient_of_sent(caller: Caller, group: ProcessGroup, tensor: Any) -> None:
    """Raise if MindSpore would compute the gradient of the *tensor* to send without the receiver's part."""
    if is_recorded([tensor]):
        wanted = (
            "has no gradient, and one is being recorded\n"
            "Pass mindspore.ops.stop_gradient(tensor), or use mindspore.ops.Send and Receive, which have one."
        )
        raise caller.explain(UnsupportedError(wanted), group)


def refuse_history(caller: Caller, group: ProcessGroup, tensor: Any) -> None:
    """Raise if MindSpore would go on differentiating *tensor* with its old value."""
    if is_recorded([tensor]) and not tensor._is_leaf:
        wanted = "must not overwrite a tensor of which a gradient is being recorded\nPass a new tensor."
        raise caller.explain(UnsupportedError(wanted), group)
