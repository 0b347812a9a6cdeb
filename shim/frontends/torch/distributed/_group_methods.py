"""The methods of torch's ProcessGroup that communicate nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from shim.errors import UnsupportedError
from shim.frontends.torch.distributed._errors import torch_function

if TYPE_CHECKING:
    from shim.core import groups
    from shim.frontends.torch.distributed._groups import ProcessGroup

__all__ = ["BackendType", "GroupMethods"]

_HALF_AN_HOUR = timedelta(seconds=1800)


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


class GroupMethods:
    """What a ProcessGroup tells about itself, and how it ends."""

    __slots__ = ()

    if TYPE_CHECKING:
        core: groups.ProcessGroup
        group_name: str
        group_desc: str
        backend: str

    BackendType = BackendType
    UNDEFINED = BackendType.UNDEFINED
    GLOO = BackendType.GLOO
    NCCL = BackendType.NCCL
    UCC = BackendType.UCC
    MPI = BackendType.MPI
    XCCL = BackendType.XCCL
    CUSTOM = BackendType.CUSTOM

    @property
    def bound_device_id(self) -> None:
        """No accelerator: the engine works on host memory."""
        return None

    @property
    def use_pg_for_symm_mem_rendezvous(self) -> bool:
        """Never: there is no symmetric memory of accelerators here."""
        return False

    @property
    def _device_types(self) -> list[Any]:
        """The kinds of devices whose tensors it takes, as ``torch.device``."""
        import torch  # the objects it returns are torch's

        return [torch.device("cpu")]

    def _get_backend_name(self) -> str:
        """Return the name of its backend."""
        return self.backend

    def _get_backend(self, device: Any) -> Any:
        """Return what serves the tensors of *device*: the group itself for the CPU.

        Raises: RuntimeError for other devices.
        """
        if str(getattr(device, "type", device)).partition(":")[0] == "cpu":
            return self
        raise torch_function("ProcessGroup._get_backend").explain(
            UnsupportedError(f"the torch frontend's shared_memory engine has no backend for device {device!r}")
        )

    def get_group_store(self) -> Any:
        """Return the part of the world's store that is this group's.

        See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.ProcessGroup
        """
        from shim.frontends.torch.distributed import _registry

        return _registry.store_of(torch_function("ProcessGroup.get_group_store"), self)

    def set_timeout(self, timeout: timedelta) -> None:
        """Accept the *timeout* that the group was made with.

        Raises: UnsupportedError for another.
        """
        from shim.frontends.torch.distributed import _options

        _options.require_same_timeout(torch_function("ProcessGroup.set_timeout"), self.core, timeout)

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """End it on this rank, the world with all groups of this frontend; ``destroy_process_group`` forgets it."""
        from shim.frontends.torch.distributed import _membership

        _membership.end(self)

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
        from shim.frontends.torch.distributed import _division

        return _division.split_one(
            torch_function("ProcessGroup.split_group"),
            self,
            ranks,
            timeout,
            opts,
            group_name,
            group_desc,
            device_types,
        )

    def merge_remote_group(
        self,
        store: Any,
        size: int,
        timeout: timedelta = _HALF_AN_HOUR,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> ProcessGroup:
        """Refuse to merge with groups that meet at *store* into one of *size*, *timeout*, *group_name* and *group_desc*.

        Raises: UnsupportedError, always.
        """
        raise torch_function("ProcessGroup.merge_remote_group").explain(
            UnsupportedError(
                "the torch frontend's shared_memory engine makes groups of one world's ranks only, got "
                f"{store!r}, size {size}, timeout {timeout}, group_name {group_name!r} and group_desc {group_desc!r}"
            )
        )

    def boxed(self) -> Any:
        """Refuse to be put into a script object. Raises: UnsupportedError, always."""
        raise torch_function("ProcessGroup.boxed").explain(
            UnsupportedError(
                "torch's script objects hold groups of torch's own classes, and this is the torch frontend's"
            )
        )

    @classmethod
    def unbox(cls, boxed: Any, /) -> ProcessGroup:
        """Refuse to take a group out of *boxed*. Raises: UnsupportedError, always."""
        raise torch_function("ProcessGroup.unbox").explain(
            UnsupportedError(f"the torch frontend's groups cannot be in a script object, got {boxed!r}")
        )

    def _id(self) -> int:
        """Return a number that no other living group of this process has."""
        return id(self)

    def _has_hooks(self) -> bool:
        return False

    def _wait_for_pending_works(self) -> None:
        """Return: only hooks make torch wait here, and there are none."""
