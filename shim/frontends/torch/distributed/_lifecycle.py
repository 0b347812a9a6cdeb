"""Initialising and destroying the default process group, making subgroups, and asking about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shim.core import groups
from shim.frontends.torch._calls.options import seconds_of
from shim.frontends.torch._calls.options import set_timeout as set_group_timeout
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import membership, registry
from shim.frontends.torch._groups.backends import Backend, backend_of, default_backend_for
from shim.frontends.torch._groups.group_arguments import view_of
from shim.frontends.torch._groups.process_group import GroupMember, ProcessGroup, set_world
from shim.frontends.torch._stores.meeting_place import meeting_place

default_pg_timeout = timedelta(seconds=groups.DEFAULT_TIMEOUT)

_INIT = torch_function("init_process_group")
_NEW_GROUP = torch_function("new_group")
_DESTROY = torch_function("destroy_process_group")
_GET_BACKEND = torch_function("get_backend")
_GET_BACKEND_IMPL = torch_function("get_backend_impl")
_SET_TIMEOUT = torch_function("set_timeout")
_GET_RANK = torch_function("get_rank")
_GET_WORLD_SIZE = torch_function("get_world_size")
_GET_RANKS = torch_function("get_process_group_ranks")
_GET_GROUP_RANK = torch_function("get_group_rank")
_GET_GLOBAL_RANK = torch_function("get_global_rank")


def is_available() -> bool:
    """Tell whether the frontend can be used, which is always so.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.is_available
    """
    return True


def is_initialized() -> bool:
    """Tell whether ``init_process_group`` was called and the world is there.

    A forked child hears what its parent would, and can ask for ranks; what communicates raises RuntimeError in it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.is_initialized
    """
    return registry.world_view() is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
    enable_reconfigure: bool = False,
) -> None:
    """Make this process *rank* of *world_size*, found through *init_method*, *store* or the launcher's environment.

    *timeout*, a timedelta, bounds meeting and every operation; *group_name* is the world's; barriers wait for the accelerator's *device_id*.
    *pg_options*, *_ranks* and *enable_reconfigure* raise UnsupportedError, a second call or a missing device ValueError, what excludes each other AssertionError.
    Deviates: in host memory every *backend* names the one engine; a lone process needs no environment.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.init_process_group
    """
    membership.refuse_reconfiguring(_INIT, enable_reconfigure)
    device = membership.check_init(_INIT, init_method, store, world_size, rank, pg_options, device_id, _ranks)
    name = backend_of(_INIT, default_backend_for(_INIT, device) if backend is None and device is not None else backend)
    seconds = seconds_of(_INIT, timeout)
    membership.check_world_timeout(_INIT, timeout, seconds)
    place = meeting_place(_INIT, init_method, store, rank, world_size, seconds)
    world = groups.enter_world(
        _INIT,
        registry.FRONTEND,
        rank=membership.given(place.rank),
        world_size=membership.given(place.world_size),
        init_method=place.init_method,
        store=place.store,
        backend=name,
        timeout=seconds,
    )
    set_world(world, group_name, name, place.core_store, device)


def destroy_process_group(group: Any = None) -> None:
    """Leave *group*; without one, or for the world, leave every group and end the initialisation.

    Raises: AssertionError when not initialised; ValueError for a group that was destroyed before.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.destroy_process_group
    """
    membership.destroy(_DESTROY, group)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup | Any:  # Any: NON_GROUP_MEMBER, which programs need not rule out for type checkers
    """Create a group of the world ranks *ranks* (None: all); every rank of the world must call this.

    Ranks rise if *sort_ranks*; with *use_local_synchronization*, only members call. *timeout*, a timedelta, bounds its operations,
    *group_desc* describes it. A *device_id* that is not the world's raises AssertionError, *pg_options* UnsupportedError.
    Deviates: *use_local_synchronization* works with *backend* "mpi" too.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.new_group
    """
    return membership.make_group(
        _NEW_GROUP, ranks, timeout, backend, pg_options, use_local_synchronization, group_desc, device_id, sort_ranks
    )


def get_rank(group: Any = None) -> int:
    """Return the caller's rank in *group* (None: the world), -1 outside it.

    Raises: ValueError when not initialised.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_rank
    """
    return membership.rank_in(_GET_RANK, group)


def get_world_size(group: Any = None) -> int:
    """Return the number of ranks in *group* (None: the world), -1 outside it.

    Raises: ValueError when not initialised.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_world_size
    """
    return membership.size_of(_GET_WORLD_SIZE, group)


def get_backend(group: Any = None) -> str:
    """Return the backend string that *group* (None: the world) was made with, in lower case.

    Raises: ValueError when not initialised or outside the group.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_backend
    """
    return Backend(view_of(_GET_BACKEND, group).backend)


def get_backend_impl(group: Any = None, device: Any = None) -> ProcessGroup:
    """Return what serves *group*, a group or its name (None: the world), for tensors on *device*, a torch.device: the group itself.

    Raises: ValueError outside the group; RuntimeError for the name of no group, and for a *device* that nobody serves.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_backend_impl
    """
    view = registry.called(_GET_BACKEND_IMPL, group) if isinstance(group, str) else view_of(_GET_BACKEND_IMPL, group)
    return view if device is None else view.get_backend(device)


def set_timeout(timeout: timedelta, group: Any = None) -> None:
    """Have this rank wait in *group* (None: the world) for *timeout*, a timedelta, from now on, which the others need not do.

    Raises: ValueError outside the group; TypeError for what is no timedelta.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.set_timeout
    """
    set_group_timeout(_SET_TIMEOUT, view_of(_SET_TIMEOUT, group).core, timeout)


def get_process_group_ranks(group: Any) -> list[int]:
    """Return the world ranks of *group* (None: the world) in the order of their group ranks.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_process_group_ranks
    """
    return list(view_of(_GET_RANKS, group).core.ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in *group* of the world's *global_rank*.

    Raises: ValueError for a rank outside the group.
    Deviates: raises for ranks outside the world too; torch returns them unchanged for the default group.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_group_rank
    """
    return membership.group_rank(_GET_GROUP_RANK, group, global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of *group*'s *group_rank*.

    Raises: ValueError for a rank outside the group.
    Deviates: raises for ranks outside the world too; torch returns them unchanged for the default group.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_global_rank
    """
    return membership.world_rank(_GET_GLOBAL_RANK, group, group_rank)


def _rank_not_in_group(group: Any) -> bool:
    """Tell whether *group* is ``GroupMember.NON_GROUP_MEMBER``."""
    return bool(group == GroupMember.NON_GROUP_MEMBER)
