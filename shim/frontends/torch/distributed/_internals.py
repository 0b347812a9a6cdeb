"""What torch's internals, and frameworks that use them, ask about the groups there are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from shim.errors import UnsupportedError
from shim.frontends.torch._calls.deprecations import renamed
from shim.frontends.torch._calls.devices import kinds_of_devices
from shim.frontends.torch._calls.options import set_timeout
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import membership, registry
from shim.frontends.torch._groups.backends import BackendConfig
from shim.frontends.torch._groups.group_arguments import member_of, view_of
from shim.frontends.torch._groups.process_group import GroupMember, ProcessGroup
from shim.frontends.torch._stores.store_barrier import barrier_at

__all__ = [
    "_World",
    "_abort_process_group",
    "_canonicalize_group_rank",
    "_device_capability",
    "_find_or_create_pg_by_ranks_and_tag",
    "_find_pg_by_ranks_and_tag",
    "_get_default_group",
    "_get_default_store",
    "_get_global_rank",
    "_get_group_size",
    "_get_group_size_by_name",
    "_get_object_coll_device",
    "_get_pg_default_device",
    "_get_process_group_store",
    "_new_group_with_tag",
    "_resolve_process_group",
    "_set_pg_timeout",
    "_store_based_barrier",
    "_world",
]

_DEFAULT = torch_function("_get_default_store")
_OF_GROUP = torch_function("_get_process_group_store", group="pg")


def _store_based_barrier(
    rank: int,
    store: Any,
    group_name: str,
    rendezvous_count: int,
    timeout: timedelta,
    logging_interval: timedelta = timedelta(seconds=10),
) -> None:
    """Wait until *rendezvous_count* ranks, *rank* among them, have called this for *group_name* with the same *store*.

    Raises: DistStoreError when *timeout* passes.
    """
    barrier_at(
        torch_function("_store_based_barrier"), rank, store, group_name, rendezvous_count, timeout, logging_interval
    )


def _get_default_group() -> ProcessGroup:
    """Return the group of all ranks. Raises: ValueError when not initialised."""
    return registry.world_of(torch_function("get_rank"))


def _get_default_store() -> Any:
    """Return the store through which the ranks met, or one they share. Raises: ValueError when not initialised."""
    return registry.store_of(_DEFAULT, registry.world_of(_DEFAULT))


def _get_process_group_store(pg: ProcessGroup) -> Any:
    """Return the part of the default store that is *pg*'s. Raises: ValueError for what is no group."""
    return registry.store_of(_OF_GROUP, member_of(_OF_GROUP, pg))


def _get_process_group_name(pg: ProcessGroup) -> str:
    """Return *pg*'s name, ``None`` as text for what is no group."""
    return str(pg.group_name) if registry.is_registered(pg) else "None"


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """Return the group called *group_name*. Raises: RuntimeError where there is none."""
    return registry.called(torch_function("_resolve_process_group"), group_name)


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> ProcessGroup | None:
    """Return the group with *tag* whose world ranks are *ranks*, or None."""
    return registry.find(tag, ranks)


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: list[int], stride: int) -> ProcessGroup:
    """Return the group with *tag* of the caller's *stride* of *ranks*, made where there is none.

    Raises: ValueError for an empty *tag* then; AssertionError where the caller is not among *ranks*.
    """
    return membership.find_or_make(torch_function("_find_or_create_pg_by_ranks_and_tag"), tag, ranks, stride)


def _new_group_with_tag(
    ranks: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    backend_options: Any = None,
    pg_tag: str | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Do what ``new_group`` does, and name the group *pg_tag* for finding; one with the same tag and ranks is it."""
    return membership.make_group(
        torch_function("_new_group_with_tag"),
        ranks,
        timeout,
        backend,
        backend_options,
        use_local_synchronization,
        group_desc,
        device_id,
        sort_ranks,
        pg_tag or "",
    )


def _get_group_size(group: Any) -> int:
    """Return the number of ranks in *group* (None: the world). Raises: ValueError when not initialised."""
    return view_of(torch_function("_get_group_size"), group).core.size


def _get_group_size_by_name(group_name: Any) -> int:
    """Return the number of ranks in the group called *group_name*, which may be the group itself."""
    group = _resolve_process_group(group_name) if isinstance(group_name, str) else group_name
    return _get_group_size(group)


def _get_global_rank(group: Any, rank: int) -> int:
    """Return the rank in the world of *group*'s *rank*; torch calls it ``get_global_rank`` now."""
    warnings.warn(
        "torch renamed _get_global_rank to torch.distributed.get_global_rank; call it by the new name",
        FutureWarning,
        stacklevel=2,
    )
    return membership.world_rank(torch_function("_get_global_rank"), group, rank)


def _canonicalize_group_rank(
    group: Any, global_rank: int | None = None, group_rank: int | None = None, return_global: bool = False
) -> int:
    """Return the group rank of *global_rank* or *group_rank* in *group*, or the world's rank if *return_global*.

    Raises: ValueError unless exactly one of them is given, or for a rank outside *group*.
    """
    caller = torch_function("_canonicalize_group_rank")
    number = membership.one_group_rank(caller, group, global_rank, group_rank)
    world_rank = membership.world_rank(caller, group, number)
    return world_rank if return_global else number


def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
    """Have this rank wait in *group* (None: the world) for *timeout* from now on; torch calls it ``set_timeout`` now."""
    caller = renamed(torch_function("_set_pg_timeout"), "set_timeout", "2.14")
    set_timeout(caller, view_of(caller, group).core, timeout)


def _abort_process_group(group: Any = None) -> None:
    """Leave *group*, or all groups, without waiting for what runs in it: as ``destroy_process_group`` does here."""
    membership.destroy(torch_function("_abort_process_group"), group)


def _device_capability(group: Any = None) -> list[str]:
    """Return the kinds of devices whose tensors *group* takes: the CPU's first."""
    view_of(torch_function("_device_capability"), group)
    return kinds_of_devices()


def _get_object_coll_device(group: Any = None) -> str:
    """Return the kind of device on which *group*'s objects are: the CPU."""
    return _device_capability(group)[0]


def _get_pg_default_device(group: Any = None) -> Any:
    """Return the device of *group* as torch's object: the CPU."""
    import torch  # the object it returns is torch's

    return torch.device(_get_object_coll_device(group))


class _GroupRanks(Mapping[ProcessGroup, Mapping[int, int]]):
    """The group ranks of each group, where a program may note for a group what it has: torch's own lack those of a group that joins no world."""

    def __getitem__(self, pg: ProcessGroup) -> Mapping[int, int]:
        if pg not in registry.views():
            raise KeyError(pg)
        return {rank: place for place, rank in enumerate(pg.core.ranks)}

    def __iter__(self) -> Iterator[ProcessGroup]:
        return iter(registry.views())

    def __len__(self) -> int:
        return len(list(registry.views()))

    def __setitem__(self, pg: ProcessGroup, ranks: Mapping[int, int]) -> None:
        own = {rank: place for place, rank in enumerate(pg.core.ranks)}
        if own != ranks:
            raise _OF_GROUP.explain(UnsupportedError(f"the ranks of a group cannot be changed, got {ranks} for {own}"))


class _World:
    """torch's tables of groups, to be read; each property is made anew from what there is.

    Deviates: they cannot be changed; groups are made by ``new_group`` and destroyed by ``destroy_process_group``.
    """

    @property
    def default_pg(self) -> ProcessGroup | None:
        """The group of all ranks, or None."""
        return GroupMember.WORLD

    @property
    def pg_map(self) -> Mapping[ProcessGroup, tuple[str, Any]]:
        """The backend and the store of each group."""
        return MappingProxyType({pg: (pg.backend, pg.get_group_store()) for pg in registry.views()})

    @property
    def pg_names(self) -> Mapping[ProcessGroup, str]:
        """The name of each group."""
        return MappingProxyType({pg: pg.group_name for pg in registry.views()})

    @property
    def pg_group_ranks(self) -> Mapping[ProcessGroup, Mapping[int, int]]:
        """For each group, the group rank of each of its world ranks."""
        return _GroupRanks()

    @property
    def pg_backend_config(self) -> Mapping[ProcessGroup, str]:
        """For each group, which backend it has for each kind of device."""
        return MappingProxyType({pg: str(BackendConfig(pg.backend)) for pg in registry.views()})

    @property
    def group_count(self) -> int:
        """The number of groups that all ranks have made since the initialisation."""
        return registry.group_count()

    @property
    def tags_to_pg(self) -> Mapping[str, list[ProcessGroup]]:
        """The groups that have each tag; the empty one stands for all that torch's user has not named."""
        found: dict[str, list[ProcessGroup]] = {}
        for pg in registry.views():
            found.setdefault(pg.tag, []).append(pg)
            if pg.tag.startswith("ptd:"):
                found.setdefault("", []).append(pg)
        return MappingProxyType(found)

    @property
    def pg_to_tag(self) -> Mapping[ProcessGroup, str]:
        """The tag of each group."""
        return MappingProxyType({pg: pg.tag for pg in registry.views()})

    @property
    def pg_coalesce_state(self) -> Mapping[ProcessGroup, list[Any]]:
        """Nothing: the calls of a block are kept elsewhere."""
        return MappingProxyType({})

    @property
    def pg_flight_recorder_hooks(self) -> Mapping[ProcessGroup, Any]:
        """Nothing, as with torch's gloo: ``SHIM_TRACE`` records the calls of all groups."""
        return MappingProxyType({})

    @property
    def comms(self) -> list[Any]:
        """No communicators of torchcomms: the engine has none."""
        return []

    @property
    def pg_config_info(self) -> list[dict[str, Any]]:
        """What each group is called and made of; no ranks are told for a group of all."""
        world_size = _get_group_size(None)
        return [
            {
                "pg_name": pg.group_name,
                "pg_desc": pg.group_desc,
                "backend_config": str(BackendConfig(pg.backend)),
                "ranks": [] if pg.core.size == world_size else list(pg.core.ranks),
                "group_size": pg.core.size,
                "group_count": self.group_count,
            }
            for pg in registry.views()
        ]


_world = _World()
