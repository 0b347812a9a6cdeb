"""Sending and receiving, at torch's signatures."""

from __future__ import annotations

from shim.core.engines.base import Tensor
from shim.frontends.torch.distributed import _messages
from shim.frontends.torch.distributed._errors import torch_function
from shim.frontends.torch.distributed._groups import ProcessGroup
from shim.frontends.torch.distributed._tracing import between_graphs
from shim.frontends.torch.distributed._work import Work

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
    """Send *tensor* to the world's rank *dst*, or *group*'s rank *group_dst*, which receives it under the same *tag*.

    Raises: ValueError for the caller's own rank.
    Deviates: outside the group it warns and returns None, as isend does; torch 2.13 raises AttributeError.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.send
    """
    return _messages.send(_SEND, tensor, dst, group, tag, group_dst)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive *tensor* from the world's rank *src* or *group*'s *group_src* (neither: any) and return the world's rank.

    Raises: ValueError for a message of another size or dtype.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.recv
    """
    return _messages.receive(_RECV, tensor, src, group, tag, group_src)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send *tensor* to the world's rank *dst*, or *group*'s rank *group_dst*; the same *tag* receives it.

    Raises: ValueError unless exactly one of *dst* and *group_dst* is given; the caller itself may be it.
    Deviates: outside the group it always warns and returns None; torch 2.13 may raise ValueError for *dst*.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.isend
    """
    return _messages.begin_send(_ISEND, tensor, dst, group, tag, group_dst)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive *tensor* from the world's rank *src* or *group*'s *group_src*, or from any when neither is given.

    Its Work tells by ``source_rank`` which group rank the message came from.
    Raises: ValueError by the Work's ``wait`` for a message of another size or dtype.
    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.irecv
    """
    return _messages.begin_receive(_IRECV, tensor, src, group, tag, group_src)


between_graphs(globals(), __all__)
