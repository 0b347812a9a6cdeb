"""torch's ProcessGroup: the view of a group of core's, with what it tells about itself and how it is divided and ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.core.groups.process_group import absence
from shim.core.job import stores
from shim.errors import StateError, UnsupportedError
from shim.frontends.torch._calls.devices import check_device, kinds_of_devices
from shim.frontends.torch._calls.options import refuse_option, seconds_of, set_timeout
from shim.frontends.torch._compiled_graphs import keep_out_of_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.rank_lists import rank_lists, require_apart
from shim.frontends.torch._methods.group_hooks import GroupHooks
from shim.frontends.torch._methods.other_collectives import OtherCollectives
from shim.frontends.torch._methods.overloaded_collectives import OverloadedCollectives
from shim.frontends.torch._methods.refused_features import RefusedFeatures


class BackendType(Enum):
    """torch's kinds of backends under torch's numbers."""

    UNDEFINED = 0
    GLOO = 1
    NCCL = 2
    UCC = 3
    MPI = 4
    XCCL = 5
    CUSTOM = 6

    def __int__(self) -> int:
        return int(self.value)


class ProcessGroup(OverloadedCollectives, OtherCollectives, GroupHooks, RefusedFeatures):
    """A group of ranks; the view of ``core``, which other frontends may show in their own way.

    Groups are made by ``new_group`` and its like. ``tag`` is what ``_new_group_with_tag`` names it for finding.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.ProcessGroup
    """

    def __init__(self, core: Any, group_name: Any, group_desc: Any, backend: str | None = None, tag: str = "") -> None:
        is_made_by_torchs_arguments = backend is None  # a store, the rank and the number of ranks
        made = _without_backend(group_name, group_desc) if is_made_by_torchs_arguments else core
        self.core: groups.ProcessGroup = made
        self._group_name: str = "" if is_made_by_torchs_arguments else group_name
        self._group_desc: str = "undefined" if is_made_by_torchs_arguments else group_desc
        self.backend = backend or "undefined"
        self.tag = tag or f"ptd:{self._group_name}"
        self._bound_device_id: Any = None

    BackendType = BackendType
    UNDEFINED = BackendType.UNDEFINED
    GLOO = BackendType.GLOO
    NCCL = BackendType.NCCL
    UCC = BackendType.UCC
    MPI = BackendType.MPI
    XCCL = BackendType.XCCL
    CUSTOM = BackendType.CUSTOM

    def rank(self) -> int:
        """Return the caller's rank in this group."""
        return self.core.rank

    def size(self) -> int:
        """Return the number of its ranks."""
        return self.core.size

    def name(self) -> str:
        """Return the name of its backend, as torch does; ``group_name`` is the group's own."""
        return self.backend

    @property
    def group_name(self) -> str:
        """The group's own name."""
        return self._group_name

    @property
    def group_desc(self) -> str:
        """What describes the group."""
        return self._group_desc

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    def _set_group_desc(self, description: str) -> None:
        self._group_desc = description

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} rank {self.core.rank} of {self.core.size}>"

    @property
    def bound_device_id(self) -> Any:
        """The ``torch.device`` that ``init_process_group`` or ``new_group`` was given, which barriers wait for; None without one."""
        return self._bound_device_id

    @bound_device_id.setter
    def bound_device_id(self, device: Any) -> None:
        self._bound_device_id = device

    @property
    def use_pg_for_symm_mem_rendezvous(self) -> bool:
        """Never: there is no symmetric memory of accelerators here."""
        return False

    @property
    def _device_types(self) -> list[Any]:
        """The kinds of devices whose tensors it takes, as ``torch.device``."""
        import torch  # the objects it returns are torch's

        return [torch.device(kind) for kind in kinds_of_devices()]

    def _get_backend_name(self) -> str:
        """Return the name of its backend."""
        return self.backend

    def get_backend(self, device: Any) -> Any:
        """Return what serves the tensors of *device*: the group itself for the CPU and torch's accelerator.

        Raises: RuntimeError for other devices.
        """
        if str(getattr(device, "type", device)).partition(":")[0] in kinds_of_devices():
            return self
        raise torch_function("ProcessGroup.get_backend").explain(
            UnsupportedError(f"the torch frontend's engine has no backend for device {device!r}")
        )

    _get_backend = get_backend

    def _set_default_backend(self, backend_type: Any) -> None:
        """Return: ``_register_backend`` tells which backend it has, of whatever *backend_type*."""

    def _set_sequence_number_for_group(self) -> None:
        """Return: the engine numbers a group's calls from its beginning."""

    def _register_backend(self, device: Any, backend_type: Any, backend: Any) -> None:
        """Let the ranks of *backend*, a ProcessGroupGloo, be this group's, on *device* and of whatever *backend_type*.

        Raises: UnsupportedError for another kind of backend or device, and for a group that has one.
        """
        is_served = str(getattr(device, "type", device)).partition(":")[0] in kinds_of_devices()
        if not isinstance(backend, ProcessGroup) or self.core.is_alive or not is_served:
            raise torch_function("ProcessGroup._register_backend").explain(
                UnsupportedError(
                    f"the torch frontend's groups take a ProcessGroupGloo, once, got {backend!r} as {backend_type} for {device}"
                )
            )
        self.core, self.backend = backend.core, backend.backend

    def get_group_store(self) -> Any:
        """Return the part of the world's store that is this group's.

        See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.ProcessGroup
        """
        return registry.store_of(torch_function("ProcessGroup.get_group_store"), self)

    def set_timeout(self, timeout: timedelta) -> None:
        """Have this rank wait for the others for *timeout* from now on, which they need not do."""
        set_timeout(torch_function("ProcessGroup.set_timeout"), self.core, timeout)

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """End it on this rank, the world with all groups of this frontend; ``destroy_process_group`` forgets it."""
        if not registry.is_world(self):
            if self.core.name != groups.WORLD_NAME:  # else it was left before
                groups.close_group(self.core)
            return
        for one in reversed(registry.views()):
            if one.core.name != groups.WORLD_NAME:
                groups.close_group(one.core)
        self.core = groups.ended(self.core)  # the world closes when no other frontend needs it
        groups.leave_world(registry.FRONTEND)

    abort = shutdown

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> ProcessGroup | None:
        """Make a group of this group's *ranks*, who all call this; return it, or None on other ranks.

        Raises: ValueError for ranks that are not in this group, or occur twice.
        """
        caller = torch_function("ProcessGroup.split_group")
        registry.check_of_world(caller, self)
        part = rank_lists(caller, "ranks", [ranks])[0]
        require_apart(caller, "ranks", [part], range(self.core.size))
        name = groups.next_name_of(members_of(self, part))
        refuse_option(caller, "opts", opts)
        for kind in device_types if isinstance(device_types, (list, tuple)) else [device_types]:
            check_device(caller, "device_types", kind)
        seconds = self.core.timeout if timeout is None else seconds_of(caller, timeout)
        if self.core.rank not in part:
            return None
        return split_off(caller, self, name, part, seconds, self.backend, group_name, group_desc)

    def _id(self) -> int:
        """Return a number that no other living group of this process has."""
        return id(self)

    def _has_hooks(self) -> bool:
        return False

    def _wait_for_pending_works(self) -> None:
        """Return: only hooks make torch wait here, and there are none."""


def _without_backend(rank: int, size: int) -> groups.ProcessGroup:
    core = groups.ProcessGroup("ProcessGroup", tuple(range(size)), rank, None, "undefined", groups.DEFAULT_TIMEOUT)
    core.engine = absence(
        lambda: StateError("the group has no backend yet\nGive it a ProcessGroupGloo with _register_backend.")
    )
    return core


class _WorldMeta(type):
    """Gives a class the property WORLD."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # torch's name
        """The group of all ranks, None before initialisation."""
        return registry.world_view()


class GroupMember(metaclass=_WorldMeta):
    """``WORLD``, and what ``new_group`` returns to processes outside the new group."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_WorldMeta):  # torch's name
    """``group.WORLD`` is the group of all ranks, None before initialisation."""


def set_world(
    core: groups.ProcessGroup, group_name: str, backend: str, store: stores.Store | None, device: Any = None
) -> ProcessGroup:
    """Make the view of the world, bound to *device* if any; what is left of one that was closed behind our back is forgotten."""
    registry.forget_all()
    world = _new_view(core, group_name or registry.next_number(), "default_pg", backend)
    world.bound_device_id = device
    registry.hand_out_world(world, store)
    keep_out_of_graphs()
    return world


def replace_world(core: groups.ProcessGroup, old: ProcessGroup) -> ProcessGroup:
    """Let the ranks of *core* be the whole world from now on, in place of *old*."""
    world = _new_view(core, f"{old.group_name}:shrunk", old.group_desc, old.backend, old.tag)
    world.bound_device_id = old.bound_device_id
    registry.hand_out_world(world, registry.handed_out.store)
    return world


def open_view(
    core: groups.ProcessGroup, group_name: str, group_desc: str, backend: str, tag: str = "", device: Any = None
) -> ProcessGroup:
    """Make the view of a subgroup, bound to *device* if any."""
    core.description = group_desc
    view = _new_view(core, group_name, group_desc, backend, tag)
    view.bound_device_id = device
    registry.hand_out(view)
    return view


def renew_views() -> None:
    """Hand out the views of all groups again, as of the class that torch's own record needs."""
    for view in registry.views() if registry.world_view() is not None else ():
        if registry.is_world(view):
            registry.hand_out_world(_renewed(view), registry.handed_out.store)
        else:
            registry.hand_out(_renewed(view))


def _renewed(view: ProcessGroup) -> ProcessGroup:
    renewed = _new_view(view.core, view.group_name, view.group_desc, view.backend, view.tag)
    renewed.bound_device_id = view.bound_device_id
    return renewed


def _new_view(core: groups.ProcessGroup, group_name: str, group_desc: str, backend: str, tag: str = "") -> ProcessGroup:
    beside = registry.torch_world()
    kind = ProcessGroup if beside is None else beside.group_class
    return kind(core, group_name, group_desc, backend, tag)


def members_of(view: ProcessGroup, ranks: Sequence[int]) -> tuple[int, ...]:
    """Return the world's ranks of the group ranks *ranks* of *view*."""
    return tuple(view.core.ranks[rank] for rank in ranks)


def split_off(
    caller: Caller,
    parent: ProcessGroup,
    name: str,
    ranks: Sequence[int],
    seconds: float,
    backend: str,
    group_name: str | None,
    group_desc: str | None,
) -> ProcessGroup:
    """Make a group of the group ranks *ranks* of *parent*, which its members alone do, who meet under *name*."""
    core = groups.new_group(caller, members_of(parent, ranks), name=name, backend=backend, timeout=seconds)
    return open_view(
        core,
        group_name or core.name,
        group_desc or f"{parent.group_desc}:split",
        backend,
        device=parent.bound_device_id,
    )
