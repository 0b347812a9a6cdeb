"""Where the ranks of a new world meet: at an address that core reads, or at a store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from shim.core.callers import Caller
from shim.core.job import stores
from shim.errors import UnsupportedError
from shim.frontends.torch._errors import ArgumentTypeError
from shim.frontends.torch._stores.stores import core_of
from shim.frontends.torch._stores.url_handlers import is_built_in, meet


class Place(NamedTuple):
    """What core needs to find the other ranks; ``core_store`` is for the group's own use afterwards."""

    rank: int
    world_size: int
    init_method: str | None = None
    store: Any = None
    core_store: stores.Store | None = None


def meeting_place(caller: Caller, init_method: Any, store: Any, rank: int, world_size: int, seconds: float) -> Place:
    """Return where the ranks meet, having called the handler of a scheme that is not torch's own."""
    if store is not None:
        return _at(caller, store, rank, world_size)
    if init_method is None:
        return Place(rank, world_size)
    if not isinstance(init_method, str):
        raise caller.explain(ArgumentTypeError(f"init_method must be a string, got {init_method!r}"))
    if is_built_in(caller, init_method):
        return Place(rank, world_size, init_method)
    triplet = next(meet(caller, init_method, rank, world_size, {"timeout": timedelta(seconds=seconds)}))
    return _at(caller, *triplet)


def _at(caller: Caller, store: Any, rank: int, world_size: int) -> Place:
    innermost = store
    while hasattr(innermost, "underlying_store"):
        innermost = innermost.underlying_store
    if type(innermost).__name__ == "HashStore" and world_size > 1:
        raise caller.explain(
            UnsupportedError(
                "store must be one that several processes share, such as a TCPStore or a FileStore: the torch frontend's "
                f"ranks are processes, and a HashStore is for the threads of one, got world_size {world_size}"
            )
        )
    return Place(rank, world_size, None, store, stores.PrefixStore("default_pg", core_of(store)))
