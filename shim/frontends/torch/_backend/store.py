"""A store of the frontend's, such as that of a group which it has made, as torch's own code expects one; in a rehearsal, also where ranks meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import torch.distributed.distributed_c10d as torch_distributed

from shim.core.job import stores
from shim.core.job.rendezvous import rehearsed_job
from shim.core.job.variables import Variables, rehearsed_size
from shim.frontends.torch._stores.stores import Store

_TorchStore: Any = torch_distributed.Store
_SCHEMES = ("env", "file", "tcp")
_kept: list[Any] = []  # stores, of which torch's C++ code keeps no more than its own half


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


def meet_nobody() -> None:
    """Have torch's own ``init_process_group`` find nobody but this rank and a store of the rehearsal's at any address."""
    from torch.distributed.rendezvous import _rendezvous_handlers  # torch lets nobody replace its own ones otherwise

    _rendezvous_handlers.update(dict.fromkeys(_SCHEMES, _alone))


def _alone(url: str, *_: Any, **__: Any) -> Iterator[tuple[Any, int, int]]:
    place, query = url.partition("?")[::2]
    said = dict(parse_qsl(query))
    rank, size = (int(said[name]) if said.get(name, "").isdigit() else None for name in ("rank", "world_size"))
    variables = Variables(os.environ)
    job = rehearsed_job(rank, size, rehearsed_size(variables), variables)
    store = EngineStore(lambda: stores.LocalStore(f"rehearsal at {place}"))
    _kept.append(store)
    yield store, job.rank, job.size
