"""What the functions that send and receive do, given who calls."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.frontends.torch.distributed._arguments import partner_of, partner_or_any, peer_of, tag_of
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._work import Work, finish

__all__ = ["begin_receive", "begin_send", "receive", "send"]


def send(caller: Caller, tensor: Any, dst: Any, group: Any, tag: Any, group_dst: Any) -> None:
    members = group_of(caller, group)
    peer = peer_of(caller, members, dst, group_dst)
    # What tag_of says, and below source_of, without a call that takes as long as a tenth of a small message.
    number = tag if type(tag) is int else tag_of(caller, members, tag)
    calls.send(caller, members, tensor, peer, number, True)


def receive(caller: Caller, tensor: Any, src: Any, group: Any, tag: Any, group_src: Any) -> int:
    members = group_of(caller, group)
    source = None if src is None and group_src is None else peer_of(caller, members, src, group_src)
    number = tag if type(tag) is int else tag_of(caller, members, tag)
    sender = calls.received(caller, members, tensor, source, number)
    return -1 if sender < 0 else members.ranks[sender]


def begin_send(caller: Caller, tensor: Any, dst: Any, group: Any, tag: Any, group_dst: Any) -> Work | None:
    members = group_of(caller, group)
    peer = partner_of(caller, members, dst, group_dst)
    return finish(calls.send(caller, members, tensor, peer, tag_of(caller, members, tag)), True, tensor)


def begin_receive(caller: Caller, tensor: Any, src: Any, group: Any, tag: Any, group_src: Any) -> Work | None:
    members = group_of(caller, group)
    source = partner_or_any(caller, members, src, group_src)
    return finish(calls.receive(caller, members, tensor, source, tag_of(caller, members, tag)), True, tensor)
