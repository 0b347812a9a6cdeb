"""Sending and receiving lists of Python objects, which paddle has from 3.1 on."""

from __future__ import annotations

from typing import Any

from shim.frontends._paddle.collectives.object_lists import receive_items, send_items
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups.group_views import Group

_SEND = paddle_function("send_object_list", input="object_list", peer="dst")
_RECV = paddle_function("recv_object_list", output="object_list", peer="src")


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Group | None = None, dst_in_group: int | None = None
) -> None:
    """Send the objects in *object_list* to the world's rank *dst* (None: 0), or to *group*'s rank *dst_in_group*.

    Raises: ValueError for an empty list, both ranks, the caller's own or one outside; TypeError for what cannot be pickled.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/send_object_list_en.html
    """
    return send_items(_SEND, object_list, dst, group, dst_in_group)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group | None = None, src_in_group: int | None = None
) -> None:
    """Replace what is in *object_list* by as many objects of the world's rank *src* (None: 0), or *group*'s *src_in_group*.

    Raises: ValueError for an empty list, both ranks, the caller's own or one outside.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/recv_object_list_en.html
    """
    return receive_items(_RECV, object_list, src, group, src_in_group)
