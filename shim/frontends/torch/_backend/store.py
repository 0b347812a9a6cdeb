"""The store of a group that the frontend has made, as torch's own code expects one."""

from __future__ import annotations

from typing import Any

import torch.distributed.distributed_c10d as torch_distributed

from shim.core.job import stores
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._stores.stores import Store

__all__ = ["EngineStore"]

_TorchStore: Any = torch_distributed.Store


class EngineStore(Store, _TorchStore):  # type: ignore[misc]  # torch's stubs do not export it
    """The frontend's Store of *group*'s keys, which is torch's Store as well; it is made when it is first used.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.Store
    """

    def __init__(self, group: ProcessGroup) -> None:
        _TorchStore.__init__(self)
        self._group = group
        self._found: stores.Store | None = None

    @property
    def _core(self) -> stores.Store | None:  # type: ignore[override]  # it is found late
        if self._found is None:
            self._found = self._group.get_group_store()._core
        return self._found

    def clone(self) -> EngineStore:
        """Return another store with the same content, for use in another thread."""
        return EngineStore(self._group)

    getNumKeys, deleteKey = Store.num_keys, Store.delete_key  # as torch's C++ code calls them
