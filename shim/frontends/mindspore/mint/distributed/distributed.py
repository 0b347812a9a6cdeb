"""``mindspore.mint.distributed.distributed``: all of ``mint.distributed``, and what that does not export."""

from __future__ import annotations

from shim.core.callers import Caller
from shim.frontends import _releases
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore.mint.distributed._functions import *  # noqa: F403  # all that it lists
from shim.frontends.mindspore.mint.distributed._functions import __all__ as _names
from shim.frontends.mindspore.mint.distributed._rooted import gather_into_tensor, scatter_tensor

__all__ = [*_names, "gather_into_tensor", "get_cache_group_rank", "get_cache_group_size", "scatter_tensor"]

_GET_CACHE_GROUP_RANK = Caller("mindspore.mint.distributed.distributed.get_cache_group_rank")
_GET_CACHE_GROUP_SIZE = Caller("mindspore.mint.distributed.distributed.get_cache_group_size")


def get_cache_group_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's rank in *group*; before initialisation, RANK_ID of the environment or 0.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    Deviates: caches nothing, so the answer is right even after groups have changed.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_rank.html
    """
    return group_names.answer(_GET_CACHE_GROUP_RANK, group, lambda found: found.rank, "RANK_ID", 0)


def get_cache_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the number of ranks in *group*; before initialisation, RANK_SIZE of the environment or 1.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    Deviates: caches nothing, so the answer is right even after groups have changed.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_world_size.html
    """
    return group_names.answer(_GET_CACHE_GROUP_SIZE, group, lambda found: found.size, "RANK_SIZE", 1)


_releases.follow(globals())
