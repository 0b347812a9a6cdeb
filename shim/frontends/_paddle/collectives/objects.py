"""The collectives of Python objects, the same in every version of paddle."""

from __future__ import annotations

from typing import Any

from shim.errors import NotMemberError
from shim.frontends._paddle.collectives.object_lists import broadcast_items, gather_items, scatter_items
from shim.frontends._paddle.errors import OutsiderError, paddle_function
from shim.frontends._paddle.groups.group_views import Group

__all__ = ["all_gather_object", "broadcast_object_list", "scatter_object_list"]

_ALL_GATHER = paddle_function(
    "all_gather_object", errors={NotMemberError: OutsiderError}, output="object_list", input="obj"
)
_BROADCAST = paddle_function("broadcast_object_list", output="object_list", input="object_list", root="src")
_SCATTER = paddle_function("scatter_object_list", output="out_object_list", input="in_object_list", root="src")


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Append every rank's *obj*, in the order of the ranks, to *object_list*, whatever is in it already.

    Raises: RuntimeError outside *group*; TypeError for what cannot be pickled.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/all_gather_object_en.html
    """
    return gather_items(_ALL_GATHER, object_list, obj, group)


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    """Replace what is in *object_list* by copies of what the world's rank *src* has in its list, which is as long.

    Raises: ValueError for a rank outside the group; TypeError for what cannot be pickled.
    Deviates: *src* keeps its own objects; paddle replaces them by copies.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/broadcast_object_list_en.html
    """
    return broadcast_items(_BROADCAST, object_list, src, group)


def scatter_object_list(
    out_object_list: list[Any], in_object_list: list[Any] | None = None, src: int = 0, group: Group | None = None
) -> None:
    """Leave in *out_object_list* only this rank's place in the *in_object_list* of the world's rank *src*.

    Raises: ValueError for another number of objects than ranks; TypeError where the list is missing, or cannot be pickled.
    Deviates: works in a *group*; paddle waits forever there, because it sends the size to the whole world.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/scatter_object_list_en.html
    """
    return scatter_items(_SCATTER, out_object_list, in_object_list, src, group)
