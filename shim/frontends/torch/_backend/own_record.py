"""torch's own record of its process groups, ``torch.distributed.distributed_c10d._world``, kept like the frontend's.

Whatever makes or destroys a group, ``torch.distributed`` itself or the frontend, the other one finds it, or finds it gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch.distributed.distributed_c10d

from shim.frontends.torch._backend.store import EngineStore
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._groups.process_group import ProcessGroup

__all__ = ["OwnRecord", "by_torch"]

_c10d: Any = torch.distributed.distributed_c10d  # whose own record is no public one
_by_torch = 0  # how many calls of torch's own, which keep the record themselves, are going on


@contextlib.contextmanager
def by_torch() -> Iterator[None]:
    """Let torch's own code keep the record meanwhile: it is making or ending a group."""
    global _by_torch
    _by_torch += 1
    try:
        yield
    finally:
        _by_torch -= 1


class OwnRecord:
    """What the frontend tells torch of: groups of *group_class*. Torch makes further ones with the backend of the world."""

    def __init__(self, group_class: type[ProcessGroup]) -> None:
        self.group_class = group_class
        self.is_served = (
            False  # whether torch's own groups of host memory are the engine's, whatever backend a program names
        )

    @property
    def group_count(self) -> int:
        """How many groups all ranks have agreed on since the initialisation."""
        return int(_c10d._world.group_count)

    @group_count.setter
    def group_count(self, number: int) -> None:
        if not _by_torch:
            _c10d._world.group_count = number

    def add(self, view: ProcessGroup) -> None:
        """Have ``torch.distributed`` find *view*, as it finds a group that it has made."""
        if _by_torch:
            return
        world = _c10d._world
        if registry.is_world(view):
            if world.default_pg is not None:
                return  # the program has initialised torch's own groups, and goes on with both
            _c10d._update_default_pg(view)
        backend = view.backend if self.is_served and view.backend in ("gloo", "undefined") else Backend.SHIM
        world.pg_map[view] = (backend, EngineStore(view))
        world.pg_names[view] = view.group_name
        world.pg_group_ranks[view] = {rank: place for place, rank in enumerate(view.core.ranks)}
        world.pg_backend_config[view] = str(_c10d.BackendConfig(_c10d.Backend(backend)))
        world.pg_to_tag[view] = view.tag
        for tag in (view.tag, "") if view.tag.startswith("ptd:") else (view.tag,):
            world.tags_to_pg.setdefault(tag, []).append(view)
        _c10d._register_process_group(view.group_name, view)

    def remove(self, view: ProcessGroup) -> None:
        """Have ``torch.distributed`` forget *view*."""
        world = _c10d._world
        if _by_torch or world.pg_map.pop(view, None) is None:
            return
        for of_groups in (world.pg_names, world.pg_group_ranks, world.pg_backend_config, world.pg_coalesce_state):
            of_groups.pop(view, None)
        world.pg_to_tag.pop(view, None)
        for views in world.tags_to_pg.values():
            if view in views:
                views.remove(view)
        _c10d._unregister_process_group(view.group_name)

    def clear(self) -> None:
        """Have ``torch.distributed`` forget all groups, if they were the frontend's."""
        world = _c10d._world
        if _by_torch or not isinstance(world.default_pg, self.group_class):
            return
        _c10d._update_default_pg(None)
        for of_groups in (world.pg_map, world.pg_names, world.pg_group_ranks, world.pg_backend_config):
            of_groups.clear()
        for of_groups in (world.pg_to_tag, world.tags_to_pg, world.pg_coalesce_state):
            of_groups.clear()
        _c10d._unregister_all_process_groups()
        world.group_count = 0
