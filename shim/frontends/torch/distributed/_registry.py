"""What torch's internals, and frameworks that use them, ask about the groups there are."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from shim.core import stores
from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError
from shim.frontends.torch.distributed import _groups, _membership
from shim.frontends.torch.distributed._backend import BackendConfig
from shim.frontends.torch.distributed._errors import ArgumentAssertionError, DistStoreError, torch_function
from shim.frontends.torch.distributed._groups import GroupMember, ProcessGroup
from shim.frontends.torch.distributed._options import require_same_timeout
from shim.frontends.torch.distributed._stores import Store, show

__all__ = ["barrier_at", "config_of", "find_or_make", "named", "store_of"]


def store_of(caller: Caller, group: Any) -> Store:
    """Return the part of the world's store that is *group*'s, the whole of it for the world."""
    view = _groups.view_of(caller, group)
    if _groups.is_apart(view):
        own: Store = view.get_group_store()
        return own
    whole = _groups.default_store(caller)
    return show(whole if view is _groups.views()[0] else stores.PrefixStore(view.core.name, whole))


def config_of(caller: Caller, group: Any) -> str:
    """Return which backend *group* has for each kind of device."""
    return str(BackendConfig(_groups.view_of(caller, group).backend))


def named(caller: Caller, group_name: str) -> ProcessGroup:
    """Return the group of that name."""
    found = _groups.named(group_name)
    if found is None:
        raise caller.explain(StateError(f"group_name must be that of a group this process is in, got {group_name!r}"))
    return found


def find_or_make(caller: Caller, tag: str, ranks: list[int], stride: int) -> ProcessGroup:
    """Return the group with *tag* of those *stride* of *ranks* that the caller is among; its members call."""
    if stride < 1 or len(ranks) % stride:
        raise caller.explain(ArgumentError(f"stride must divide the {len(ranks)} ranks, got {stride}"))
    world = _groups.view_of(caller, None).core
    parts = [sorted(ranks[start : start + stride]) for start in range(0, len(ranks), stride)]
    mine = [part for part in parts if world.ranks[world.rank] in part]
    if not mine:
        raise caller.explain(ArgumentAssertionError(f"ranks must include the caller's own, got {ranks}"), world)
    found = _groups.find(tag, mine[0])
    if found is not None:
        return found
    if tag == "":
        raise caller.explain(ArgumentError("tag must not be empty where no such group exists"), world)
    # No rank makes the parts of others here, so the members of each meet under a name that they alone find.
    made: ProcessGroup = _membership.make_group(caller, mine[0], None, None, None, True, None, None, True, tag)
    return made


def barrier_at(
    caller: Caller, rank: int, store: Any, group_name: str, count: int, timeout: timedelta, interval: timedelta
) -> None:
    """Wait at *store* until *count* ranks have come, looking at it again after each *interval*."""
    key = f"store_based_barrier_key:{group_name}"
    last = f"{key}:last_worker"
    store.add(key, 1)
    if store.add(key, 0) == count:
        store.set(last, "1")
    end = time.monotonic() + timeout.total_seconds()
    while not _came(store, last, min(end - time.monotonic(), interval.total_seconds())):
        if time.monotonic() >= end:
            raise caller.explain(
                DistStoreError(f"{count} ranks must come within {timeout}, and {store.add(key, 0)} have (rank {rank})")
            )


def _came(store: Any, key: str, seconds: float) -> bool:
    """Wait up to *seconds* at *store* for *key*; what the store raises but for time passing is passed on.

    A store that is not ours may have no class of errors for that alone, but it takes its time before it raises.
    """
    seconds = max(seconds, 0.001)
    begin = time.monotonic()
    try:
        store.wait([key], timedelta(seconds=seconds))
    except TimeoutError:
        return False
    except RuntimeError:
        if time.monotonic() - begin < 0.9 * seconds:
            raise
        return False
    return True


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


def _get_default_store() -> Any:
    """Return the store through which the ranks met, or one they share. Raises: ValueError when not initialised."""
    return store_of(torch_function("_get_default_store"), None)


def _get_process_group_store(pg: ProcessGroup) -> Any:
    """Return the part of the default store that is *pg*'s. Raises: ValueError for what is no group."""
    return store_of(torch_function("_get_process_group_store"), _groups.member_of(_NAME, pg))


_NAME = torch_function("_get_process_group_store", group="pg")


def _get_process_group_name(pg: ProcessGroup) -> str:
    """Return *pg*'s name, ``None`` as text for what is no group."""
    return str(pg.group_name) if _groups.is_registered(pg) else "None"


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """Return the group called *group_name*. Raises: RuntimeError where there is none."""
    return named(torch_function("_resolve_process_group"), group_name)


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> ProcessGroup | None:
    """Return the group with *tag* whose world ranks are *ranks*, or None."""
    return _groups.find(tag, ranks)


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: list[int], stride: int) -> ProcessGroup:
    """Return the group with *tag* of the caller's *stride* of *ranks*, made where there is none.

    Raises: ValueError for an empty *tag* then; AssertionError where the caller is not among *ranks*.
    """
    return find_or_make(torch_function("_find_or_create_pg_by_ranks_and_tag"), tag, ranks, stride)


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
    return _membership.make_group(
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
    return _groups.view_of(torch_function("_get_group_size"), group).core.size


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
    return _membership.world_rank(torch_function("_get_global_rank"), group, rank)


def _canonicalize_group_rank(
    group: Any, global_rank: int | None = None, group_rank: int | None = None, return_global: bool = False
) -> int:
    """Return the group rank of *global_rank* or *group_rank* in *group*, or the world's rank if *return_global*.

    Raises: ValueError unless exactly one of them is given, or for a rank outside *group*.
    """
    caller = torch_function("_canonicalize_group_rank")
    if (global_rank is None) == (group_rank is None):
        raise caller.explain(
            ArgumentError(f"either global_rank or group_rank must be given, got {global_rank} and {group_rank}")
        )
    if group_rank is None:
        group_rank = _membership.group_rank(caller, group, global_rank)  # type: ignore[arg-type]  # one is given
    world_rank = _membership.world_rank(caller, group, group_rank)
    return world_rank if return_global else group_rank


def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
    """Accept the *timeout* that *group* (None: the world) was made with. Raises: UnsupportedError for another."""
    caller = torch_function("_set_pg_timeout")
    require_same_timeout(caller, _groups.view_of(caller, group).core, timeout)


def _abort_process_group(group: Any = None) -> None:
    """Leave *group*, or all groups, without waiting for what runs in it: as ``destroy_process_group`` does here."""
    _membership.destroy(torch_function("_abort_process_group"), group)


def _device_capability(group: Any = None) -> list[str]:
    """Return the kinds of devices whose tensors *group* takes: the CPU's."""
    _groups.view_of(torch_function("_device_capability"), group)
    return ["cpu"]


def _get_object_coll_device(group: Any = None) -> str:
    """Return the kind of device on which *group*'s objects are: the CPU."""
    return _device_capability(group)[0]


def _get_pg_default_device(group: Any = None) -> Any:
    """Return the device of *group* as torch's object: the CPU."""
    import torch  # the object it returns is torch's

    return torch.device(_get_object_coll_device(group))


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
        return MappingProxyType({pg: (pg.backend, pg.get_group_store()) for pg in _groups.views()})

    @property
    def pg_names(self) -> Mapping[ProcessGroup, str]:
        """The name of each group."""
        return MappingProxyType({pg: pg.group_name for pg in _groups.views()})

    @property
    def pg_group_ranks(self) -> Mapping[ProcessGroup, Mapping[int, int]]:
        """For each group, the group rank of each of its world ranks."""
        return MappingProxyType({pg: {rank: i for i, rank in enumerate(pg.core.ranks)} for pg in _groups.views()})

    @property
    def pg_backend_config(self) -> Mapping[ProcessGroup, str]:
        """For each group, which backend it has for each kind of device."""
        return MappingProxyType({pg: str(BackendConfig(pg.backend)) for pg in _groups.views()})

    @property
    def group_count(self) -> int:
        """The number of groups that all ranks have made since the initialisation."""
        return _groups.group_count()

    @property
    def tags_to_pg(self) -> Mapping[str, list[ProcessGroup]]:
        """The groups that have each tag; the empty one stands for all that torch's user has not named."""
        found: dict[str, list[ProcessGroup]] = {}
        for pg in _groups.views():
            found.setdefault(pg.tag, []).append(pg)
            if pg.tag.startswith("ptd:"):
                found.setdefault("", []).append(pg)
        return MappingProxyType(found)

    @property
    def pg_to_tag(self) -> Mapping[ProcessGroup, str]:
        """The tag of each group."""
        return MappingProxyType({pg: pg.tag for pg in _groups.views()})

    @property
    def pg_coalesce_state(self) -> Mapping[ProcessGroup, list[Any]]:
        """Nothing: the calls of a block are kept elsewhere."""
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
            for pg in _groups.views()
        ]


_world = _World()
