"""A store of the frontend's, such as that of a group which it has made, as torch's own code expects one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed.distributed_c10d as torch_distributed

from shim.core.job import stores
from shim.frontends.torch._stores.stores import Store

_TorchStore: Any = torch_distributed.Store


class EngineStore(Store, _TorchStore):  # type: ignore[misc]  # torch's stubs do not export it
    """The frontend's Store over what *find* returns, which is torch's Store as well; it is found when it is first used.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.Store
    """

    def __init__(self, find: Callable[[], stores.Store | None]) -> None:
        _TorchStore.__init__(self)
        self._find = find
        self._found: stores.Store | None = None

    @property
    def _core(self) -> stores.Store | None:  # type: ignore[override]  # it is found late
        if self._found is None:
            self._found = self._find()
        return self._found

    def clone(self) -> EngineStore:
        """Return another store with the same content, for use in another thread."""
        return EngineStore(self._find)

    getNumKeys, deleteKey = Store.num_keys, Store.delete_key  # as torch's C++ code calls them
