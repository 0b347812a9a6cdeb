"""``mindspore.ops.communication``: objects of Python between ranks."""

from __future__ import annotations

from typing import Any

from shim.core.callers import Caller
from shim.frontends.mindspore._functional.in_place_switch import in_place_only
from shim.frontends.mindspore._in_place import objects

_ALL_GATHER_OBJECT = Caller("mindspore.ops.communication.all_gather_object", input="obj")
_BROADCAST_OBJECT_LIST = Caller("mindspore.ops.communication.broadcast_object_list", root="src", input="object_list")
_GATHER_OBJECT = Caller("mindspore.ops.communication.gather_object", root="dst", input="obj")
_SCATTER_OBJECT_LIST = Caller(
    "mindspore.ops.communication.scatter_object_list", root="src", input="scatter_object_input_list"
)
_SEND_OBJECT_LIST = Caller("mindspore.ops.communication.send_object_list", peer="dst", input="object_list")
_RECV_OBJECT_LIST = Caller("mindspore.ops.communication.recv_object_list", peer="src", output="object_list")


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Put each rank's *obj*, pickled and unpickled, into its place in every rank's *object_list*.

    Raises: TypeError if *object_list* is no list with a place for each rank, *obj* cannot be pickled or *group* is no str.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.all_gather_object.html
    """
    return objects.all_gather(in_place_only(_ALL_GATHER_OBJECT), object_list, obj, group)


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: str | None = None, device: str | None = None
) -> None:
    """Put copies of the objects in the *object_list* of the world's rank *src* into every other rank's. *device* is reserved.

    Raises: TypeError if *object_list* is no list or empty, *src* no int or *group* no str.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.broadcast_object_list.html
    """
    return objects.broadcast(in_place_only(_BROADCAST_OBJECT_LIST), object_list, src, group, device)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None
) -> None:
    """Put each rank's *obj* into its place in the *object_gather_list* of the world's rank *dst*; only that rank needs one.

    Raises: TypeError if it is no list with a place for each rank, *dst* no int, *group* no str or *obj* cannot be pickled.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.gather_object.html
    """
    return objects.gather(in_place_only(_GATHER_OBJECT), obj, object_gather_list, dst, group)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None,
    src: int = 0,
    group: str | None = None,
) -> None:
    """Put this rank's place in the *scatter_object_input_list* of the world's rank *src* first in *scatter_object_output_list*.

    Raises: TypeError if the output is no list or empty, the input of *src* has not one object for each rank, *src* is no int or
    *group* no str.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.scatter_object_list.html
    """
    return objects.scatter(
        in_place_only(_SCATTER_OBJECT_LIST), scatter_object_output_list, scatter_object_input_list, src, group
    )


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: str | None = None) -> None:
    """Send the objects in *object_list* to the world's rank *dst*, which receives as many. *device* is reserved.

    Raises: TypeError if *object_list* is no list, *dst* no int or *group* no str; ValueError for the calling rank.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.send_object_list.html
    """
    return objects.send(in_place_only(_SEND_OBJECT_LIST), object_list, dst, group, device)


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: str | None = None) -> int:
    """Replace what is in *object_list* by as many objects of the world's rank *src*, and return 0. *device* is reserved.

    Raises: TypeError if *object_list* is no list, *src* no int or *group* no str; ValueError for the calling rank.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.recv_object_list.html
    """
    return objects.receive(in_place_only(_RECV_OBJECT_LIST), object_list, src, group, device)
