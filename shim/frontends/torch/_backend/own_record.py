"""torch's own record of its process groups, ``torch.distributed.distributed_c10d._world``, kept like the frontend's.

Whatever makes or destroys a group, ``torch.distributed`` itself or the frontend, the other one finds it, or finds it gone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch.distributed.distributed_c10d

from shim.frontends.torch._backend.store import EngineStore
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._groups.process_group import ProcessGroup

OF_HOST_MEMORY = ("gloo", "undefined", Backend.SHIM)  # the backends that the engine can stand for
_c10d: Any = torch.distributed.distributed_c10d  # whose own record is no public one
_thread = threading.local()  # its by_torch: how many calls of torch's own, which keep the record themselves, go on here


@contextlib.contextmanager
def by_torch() -> Iterator[None]:
    """Let torch's own code keep the record meanwhile: on this thread, it is making or ending a group."""
    _thread.by_torch = _by_torch() + 1
    try:
        yield
    finally:
        _thread.by_torch -= 1


def _by_torch() -> int:
    return getattr(_thread, "by_torch", 0)


class OwnRecord:
    """What the frontend tells torch of: groups of *group_class*. Torch makes further ones with the backend of the world.

    Where a program has initialised torch's own groups with another backend before, nothing is told: it goes on with both.
    """

    def __init__(self, group_class: type[ProcessGroup]) -> None:
        self.group_class = group_class
        # Whether torch's own groups of host memory are the engine's, whatever backend a program names.
        self.is_served = False

    @property
    def _is_apart(self) -> bool:
        default = _c10d._world.default_pg
        return default is not None and not isinstance(default, self.group_class)

    @property
    def group_count(self) -> int:
        """How many groups all ranks have agreed on since the initialisation."""
        return 0 if self._is_apart else int(_c10d._world.group_count)

    @group_count.setter
    def group_count(self, number: int) -> None:
        if not (_by_torch() or self._is_apart):
            _c10d._world.group_count = number

    def add(self, view: ProcessGroup) -> None:
        """Have ``torch.distributed`` find *view*, as it finds a group that it has made."""
        if _by_torch() or self._is_apart:
            return
        world = _c10d._world
        backend = view.backend if self.is_served and view.backend in OF_HOST_MEMORY else Backend.SHIM
        _c10d._register_process_group(view.group_name, view)
        self.name_backend(view, backend, EngineStore(lambda: view.get_group_store()._core))
        world.pg_names[view] = view.group_name
        world.pg_group_ranks[view] = {rank: place for place, rank in enumerate(view.core.ranks)}
        world.pg_to_tag[view] = view.tag
        for tag in (view.tag, "") if view.tag.startswith("ptd:") else (view.tag,):
            world.tags_to_pg.setdefault(tag, []).append(view)
        if registry.is_world(view):
            _c10d._update_default_pg(view)

    def name_backend(self, view: ProcessGroup, backend: str, store: Any) -> None:
        """Have ``torch.distributed`` tell that *view* is of *backend*, and has the *store*."""
        _c10d._world.pg_map[view] = (backend, store)
        _c10d._world.pg_backend_config[view] = str(_c10d.BackendConfig(_c10d.Backend(backend)))

    def remove(self, view: ProcessGroup) -> None:
        """Have ``torch.distributed`` forget *view*."""
        world = _c10d._world
        if _by_torch() or world.pg_map.pop(view, None) is None:
            return
        for of_groups in (world.pg_names, world.pg_group_ranks, world.pg_backend_config, world.pg_coalesce_state):
            of_groups.pop(view, None)
        getattr(world, "pg_flight_recorder_hooks", {}).pop(view, None)  # of torch 2.15
        world.pg_to_tag.pop(view, None)
        for views in world.tags_to_pg.values():
            if view in views:
                views.remove(view)
        _c10d._unregister_process_group(view.group_name)
        if world.default_pg is view:
            _c10d._update_default_pg(None)

    def clear(self) -> None:
        """Have ``torch.distributed`` forget all groups, if they were the frontend's."""
        world = _c10d._world
        if _by_torch() or self._is_apart or world.default_pg is None:
            return
        _c10d._update_default_pg(None)
        for of_groups in (world.pg_map, world.pg_names, world.pg_group_ranks, world.pg_backend_config):
            of_groups.clear()
        for of_groups in (world.pg_to_tag, world.tags_to_pg, world.pg_coalesce_state):
            of_groups.clear()
        getattr(world, "pg_flight_recorder_hooks", {}).clear()
        _c10d._unregister_all_process_groups()
        world.group_count = 0
