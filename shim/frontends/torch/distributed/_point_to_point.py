"""Sending and receiving, at torch's signatures."""

from __future__ import annotations

from shim.core import calls
from shim.core.engines.base import Tensor
from shim.frontends.torch._calls.arguments import partner_of, partner_or_any, peer_of, tag_of
from shim.frontends.torch._calls.work import Work, finish
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._groups.process_group import ProcessGroup

__all__ = ["irecv", "isend", "recv", "send"]

_SEND = torch_function("send", input="tensor", root="dst", peer="dst")
_ISEND = torch_function("isend", input="tensor", root="dst", peer="dst")
_IRECV = torch_function("irecv", output="tensor", root="src", peer="src")
_RECV = torch_function("recv", output="tensor", root="src", peer="src")


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send *tensor* to the world's rank *dst*, or *group*'s rank *group_dst*, which receives as many elements under the same *tag*.

    Raises: ValueError for the caller's own rank.
    Deviates: outside the group it warns and returns None, as isend does; torch 2.13 raises AttributeError.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.send
    """
    members = group_of(_SEND, group)
    peer = peer_of(_SEND, members, dst, group_dst)
    # What tag_of says, and below source_of, without a call that takes as long as a tenth of a small message.
    number = tag if type(tag) is int else tag_of(_SEND, members, tag)
    calls.send(_SEND, members, tensor, peer, number, True)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive *tensor* from the world's rank *src* or *group*'s *group_src* (neither: any) and return the world's rank.

    Raises: RuntimeError (MismatchError) for a message with another number of elements or dtype.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.recv
    """
    members = group_of(_RECV, group)
    source = None if src is None and group_src is None else peer_of(_RECV, members, src, group_src)
    number = tag if type(tag) is int else tag_of(_RECV, members, tag)
    sender = calls.received(_RECV, members, tensor, source, number)
    return -1 if sender < 0 else members.ranks[sender]


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send *tensor* to the world's rank *dst*, or *group*'s rank *group_dst*; as many elements are received under the same *tag*.

    Raises: ValueError unless exactly one of *dst* and *group_dst* is given; the caller itself may be it.
    Deviates: outside the group it always warns and returns None; torch 2.13 may raise ValueError for *dst*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.isend
    """
    members = group_of(_ISEND, group)
    peer = partner_of(_ISEND, members, dst, group_dst)
    return finish(calls.send(_ISEND, members, tensor, peer, tag_of(_ISEND, members, tag)), True, tensor)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive *tensor* from the world's rank *src* or *group*'s *group_src*, or from any when neither is given.

    Its Work tells by ``source_rank`` which group rank the message came from.
    Raises: RuntimeError (MismatchError) by the Work's ``wait`` for a message with another number of elements or dtype.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.irecv
    """
    members = group_of(_IRECV, group)
    source = partner_or_any(_IRECV, members, src, group_src)
    return finish(calls.receive(_IRECV, members, tensor, source, tag_of(_IRECV, members, tag)), True, tensor)


between_graphs(globals(), __all__)
