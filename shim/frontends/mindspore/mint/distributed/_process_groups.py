"""``mindspore.mint.distributed``: the world, its groups and the ranks in them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError, RankError, StateError
from shim.frontends.mindspore._errors import ArgumentTypeError, WorldSizeError
from shim.frontends.mindspore._groups import group_names, membership
from shim.frontends.mindspore._groups.stores import TCPStore

_INIT_PROCESS_GROUP = Caller("mindspore.mint.distributed.init_process_group", errors={StateError: WorldSizeError})
_DESTROY_PROCESS_GROUP = Caller("mindspore.mint.distributed.destroy_process_group")
_GET_RANK = Caller("mindspore.mint.distributed.get_rank")
_GET_WORLD_SIZE = Caller("mindspore.mint.distributed.get_world_size")
_GET_BACKEND = Caller("mindspore.mint.distributed.get_backend")
_GET_GLOBAL_RANK = Caller("mindspore.mint.distributed.get_global_rank")
_GET_GROUP_RANK = Caller("mindspore.mint.distributed.get_group_rank")
_GET_PROCESS_GROUP_RANKS = Caller("mindspore.mint.distributed.get_process_group_ranks")
_NEW_GROUP = Caller(
    "mindspore.mint.distributed.new_group", errors={RankError: RankError, ArgumentError: ArgumentTypeError}
)


def is_available() -> bool:
    """Tell that there are collectives: always.

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.is_available.html
    """
    return True


def is_initialized() -> bool:
    """Tell whether this process has called ``init_process_group``, or ``mindspore.communication.init``.

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.is_initialized.html
    """
    return group_names.is_initialized()


def init_process_group(
    backend: str = "hccl",
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: TCPStore | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: int | None = None,
) -> None:
    """Make this process rank *rank* of *world_size*, or what the launcher's environment says, in the world *group_name*.

    Ranks meet at *init_method* (tcp://HOST:PORT) or in a *store*, for which both numbers are needed. *device_id* is reserved.
    Raises: ValueError for another *backend* than "hccl", or numbers that do not fit; TypeError for wrong types.
    Deviates: works on a CPU; *timeout*, a timedelta, holds for every collective; *pg_options* other than HCCL's raise UnsupportedError.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.init_process_group.html
    """
    return membership.initialize(
        _INIT_PROCESS_GROUP,
        backend=backend,
        init_method=init_method,
        timeout=timeout,
        world_size=world_size,
        rank=rank,
        store=store,
        group_name=group_name,
        pg_options=pg_options,
        device_id=device_id,
    )


def destroy_process_group(group: str | None = None) -> None:
    """Destroy *group*; with None or the world, every group, unless another frontend is still using the world.

    Raises: TypeError if *group* is no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.destroy_process_group.html
    """
    return membership.destroy(_DESTROY_PROCESS_GROUP, group)


def get_rank(group: str | None = None) -> int:
    """Return this process's rank in *group*, -1 outside it; before initialisation, RANK_ID of the environment or 0.

    Raises: TypeError if *group* is no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_rank.html
    """
    return group_names.answer_or_minus_one(_GET_RANK, group, lambda found: found.rank, "RANK_ID", 0)


def get_world_size(group: str | None = None) -> int:
    """Return the number of ranks in *group*, -1 outside it and if there is none; before initialisation, RANK_SIZE of the environment or 1.

    Raises: TypeError if *group* is no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_world_size.html
    """
    return group_names.answer_or_minus_one(_GET_WORLD_SIZE, group, lambda found: found.size, "RANK_SIZE", 1)


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:
    """Make a group of *ranks*, sorted, or find the one that has them, and return its name; None means the world.

    *backend* is "hccl", "mccl" or None, *timeout* a timedelta; members wait for members alone, whatever *use_local_synchronization* says.
    Raises: TypeError, which is a ValueError too, for *ranks* that occur twice; ValueError for ranks outside the world.
    Deviates: raises where MindSpore returns ""; a new group has *timeout* and *group_desc*; *pg_options* other than HCCL's raise UnsupportedError.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.new_group.html
    """
    return membership.subgroup(
        _NEW_GROUP,
        ranks,
        timeout=timeout,
        backend=backend,
        use_local_synchronization=use_local_synchronization,
        description=group_desc,
        pg_options=pg_options,
    )


def get_backend(group: str | None = None) -> str:
    """Return the string "hccl" or "mccl", as the name of *group* says.

    Raises: TypeError if *group* is no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_backend.html
    """
    return group_names.backend_of(_GET_BACKEND, group)


def get_global_rank(group: str | None, group_rank: int) -> int:
    """Return the rank in the world of *group_rank* in *group*.

    Raises: TypeError if *group* is no str; ValueError if it has no such rank.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_global_rank.html
    """
    return group_names.world_rank(_GET_GLOBAL_RANK, group, group_rank)


def get_group_rank(group: str | None, global_rank: int) -> int:
    """Return the rank in *group* of *global_rank* in the world.

    Raises: TypeError if *group* is no str; ValueError if *global_rank* is not in it.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_group_rank.html
    """
    return group_names.group_rank(_GET_GROUP_RANK, group, global_rank)


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Return the world's ranks that are in *group*, in the order of their ranks there.

    Raises: TypeError if *group* is no str.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_process_group_ranks.html
    """
    return list(group_names.known_group(_GET_PROCESS_GROUP_RANKS, group).ranks)
