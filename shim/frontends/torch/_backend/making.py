"""Groups that torch's own ``init_process_group`` and ``new_group`` ask the backend for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from shim.core import groups
from shim.errors import UnsupportedError
from shim.frontends.torch._backend.group import EngineGroup
from shim.frontends.torch._backend.hooks import follow_torchs_own
from shim.frontends.torch._backend.own_record import OwnRecord, by_torch
from shim.frontends.torch._backend.redistribution import exchange_directly
from shim.frontends.torch._calls.options import refuse_option, seconds_of
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._groups.process_group import ProcessGroup, open_view, renew_views, set_world
from shim.frontends.torch._methods.refused_features import INSTEAD_OF_RECONFIGURING
from shim.frontends.torch._stores.meeting_place import meeting_place
from shim.frontends.torch._stores.stores import core_of

record = OwnRecord(EngineGroup)

_INIT = torch_function("init_process_group")
_NEW_GROUP = torch_function("new_group")


def link() -> None:
    """From now on, keep torch's record of groups and the frontend's as one: what either makes is a group to both."""
    exchange_directly()
    follow_torchs_own()
    if registry.torch_world() is None:
        registry.keep_in_step(record)
        renew_views()


def unlink() -> None:
    """From now on, tell torch of no group; there must be none."""
    registry.keep_in_step(None)


def make_group(asked: Any, options: Any) -> ProcessGroup:
    """Make the group that torch has *asked* for, as its ``_DistributedBackendOptions`` say; its members call this.

    Raises: UnsupportedError for *options*, of which the engine has none, and for groups that are to be reconfigured.
    """
    link()
    if getattr(asked, "enable_reconfigure", False):  # of torch 2.14
        raise _INIT.explain(
            UnsupportedError(
                f"enable_reconfigure must be False: the engine gives no group other ranks\n{INSTEAD_OF_RECONFIGURING}"
            )
        )
    with by_torch():
        if asked.global_ranks_in_group:
            return _make_subgroup(asked, options)
        return _make_world(asked, options) if registry.world_view() is None else _make_apart(asked, options)


def _make_world(asked: Any, options: Any) -> ProcessGroup:
    refuse_option(_INIT, "pg_options", options)
    seconds = seconds_of(_INIT, asked.timeout)
    with _patience(asked.store, asked.timeout):
        place = meeting_place(_INIT, None, asked.store, asked.group_rank, asked.group_size, seconds)
        world = groups.enter_world(
            _INIT,
            registry.FRONTEND,
            rank=place.rank,
            world_size=place.world_size,
            store=place.store,
            backend=Backend.SHIM,
            timeout=seconds,
        )
    return set_world(world, asked.group_id, Backend.SHIM, core_of(asked.store))


def _make_apart(asked: Any, options: Any) -> ProcessGroup:
    """Make a group beside the world, of ranks that may be of other worlds: a program that trains and another that serves have one."""
    refuse_option(_NEW_GROUP, "pg_options", options)
    seconds = seconds_of(_NEW_GROUP, asked.timeout)
    with _patience(asked.store, asked.timeout):
        place = meeting_place(_NEW_GROUP, None, asked.store, asked.group_rank, asked.group_size, seconds)
        core = groups.open_apart(
            _NEW_GROUP, place.rank, place.world_size, store=place.store, backend=Backend.SHIM, timeout=seconds
        )
    return EngineGroup(core, asked.group_id, "undefined", Backend.SHIM)


@contextlib.contextmanager
def _patience(store: Any, timeout: timedelta) -> Iterator[None]:
    """Have *store* wait for *timeout* meanwhile."""
    before = store.timeout
    store.set_timeout(timeout)
    try:
        yield
    finally:
        store.set_timeout(before)


def _make_subgroup(asked: Any, options: Any) -> ProcessGroup:
    refuse_option(_NEW_GROUP, "pg_options", options)
    core = groups.new_group(
        _NEW_GROUP,
        list(asked.global_ranks_in_group),
        name=f"torch {asked.group_id}",
        backend=Backend.SHIM,
        timeout=seconds_of(_NEW_GROUP, asked.timeout),
    )
    return open_view(core, asked.group_id, "undefined", Backend.SHIM)
