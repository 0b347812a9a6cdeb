"""``mindspore.communication``: who belongs to the world and to its named groups."""

from __future__ import annotations

from typing import Any

from shim.core.callers import Caller
from shim.frontends.mindspore._groups import group_names, membership
from shim.frontends.mindspore._groups.group_names import (
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    GlobalComm,
)

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]

_INIT = Caller("mindspore.communication.init")
_GET_RANK = Caller("mindspore.communication.get_rank")
_GET_GROUP_SIZE = Caller("mindspore.communication.get_group_size")
_GET_COMM_NAME = Caller("mindspore.communication.get_comm_name")
_GET_LOCAL_RANK = Caller("mindspore.communication.get_local_rank")
_GET_LOCAL_RANK_SIZE = Caller("mindspore.communication.get_local_rank_size")
_GET_WORLD_RANK = Caller("mindspore.communication.get_world_rank_from_group_rank", rank="group_rank_id")
_GET_GROUP_RANK = Caller("mindspore.communication.get_group_rank_from_world_rank", rank="world_rank_id")
_GET_PROCESS_GROUP_RANKS = Caller("mindspore.communication.get_process_group_ranks")
_CREATE_GROUP = Caller("mindspore.communication.create_group", ranks="rank_ids")
_DESTROY_GROUP = Caller("mindspore.communication.destroy_group")


def init(backend_name: str | None = None) -> None:
    """Make this process a rank of the world that the launcher's environment describes; a lone process is a world of one.

    Raises: TypeError if *backend_name* is no str; RuntimeError if it is not "hccl", "nccl" or "mccl", which all mean
    the one engine.
    Deviates: None means "hccl" on every device.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.init.html
    """
    return membership.initialize_with_backend(_INIT, backend_name)


def release() -> None:
    """Leave the world, and with it every group, unless another frontend is still using it.

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.release.html
    """
    return membership.leave()


def get_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's rank in *group*; before ``init``, RANK_ID of the environment or 0.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    Deviates: returns -1 outside *group*.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_rank.html
    """
    return group_names.answer(_GET_RANK, group, lambda found: found.rank, "RANK_ID", 0)


def get_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the number of ranks in *group*; before ``init``, RANK_SIZE of the environment or 1.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_group_size.html
    """
    return group_names.answer(_GET_GROUP_SIZE, group, lambda found: found.size, "RANK_SIZE", 1)


def get_local_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's rank among those of *group* on this host, which are all; before ``init``, LOCAL_RANK or 0.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_local_rank.html
    """
    return group_names.answer(_GET_LOCAL_RANK, group, lambda found: found.rank, "LOCAL_RANK", 0)


def get_local_rank_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the number of ranks of *group* on this host, which are all; before ``init``, LOCAL_RANK_SIZE or 1.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_local_rank_size.html
    """
    return group_names.answer(_GET_LOCAL_RANK_SIZE, group, lambda found: found.size, "LOCAL_RANK_SIZE", 1)


def get_comm_name(group: str = GlobalComm.WORLD_COMM_GROUP) -> str:
    """Return the name that the engine knows *group* by.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    Deviates: the name is not a device address.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_comm_name.html
    """
    return group_names.named_group(_GET_COMM_NAME, group).name


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Return the rank in the world of *group_rank_id* in *group*.

    Raises: TypeError for wrong types; ValueError if *group* has no such rank.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_world_rank_from_group_rank.html
    """
    return group_names.world_rank(_GET_WORLD_RANK, group, group_rank_id)


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Return the rank in *group* of *world_rank_id* in the world.

    Raises: TypeError for wrong types; ValueError if it is not in *group*.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_group_rank_from_world_rank.html
    """
    return group_names.group_rank(_GET_GROUP_RANK, group, world_rank_id)


def get_process_group_ranks(group: str = GlobalComm.WORLD_COMM_GROUP) -> list[int]:
    """Return the world's ranks that are in *group*, in the order of their ranks there.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.get_process_group_ranks.html
    """
    return list(group_names.named_group(_GET_PROCESS_GROUP_RANKS, group).ranks)


def create_group(group: str, rank_ids: list[int], options: Any = None) -> None:
    """Make a group called *group* of the world's ranks *rank_ids*, whose order is that of their ranks in it.

    Raises: TypeError for wrong types; ValueError for *rank_ids* that are empty, occur twice, or differ from those that
    a group of this name has.
    Deviates: *options* for HCCL change nothing; others raise UnsupportedError.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.create_group.html
    """
    return membership.create(_CREATE_GROUP, group, rank_ids, options)


def destroy_group(group: str) -> None:
    """Destroy *group*, which is not the world.

    Raises: TypeError if *group* is no str; ValueError if it is the world; RuntimeError if there is no such group.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.destroy_group.html
    """
    return membership.destroy_subgroup(_DESTROY_GROUP, group)
