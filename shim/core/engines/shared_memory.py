"""The native engine for ranks on one host; ``native/`` carries it out, this gives it the engines' interface."""

from __future__ import annotations

from typing import Any

from shim import _native
from shim.core import tensors
from shim.core.engines.base import Engine, Splits
from shim.core.engines.place import Place
from shim.core.reduce_ops import ReduceOp
from shim.core.work import EngineWork

__all__ = ["SharedMemoryEngine"]

_native.set_reader_chooser(tensors.reader_for)


class SharedMemoryEngine(Engine):
    """The group's ranks share one memory file; see docs/architecture.md for what happens in it."""

    name = "shared_memory"

    __slots__ = ("_group",)

    def __init__(self, place: Place) -> None:
        world = place.world._group if isinstance(place.world, SharedMemoryEngine) else None
        self._group: _native.Group = _native.Group(
            place.key, place.name, list(place.ranks), place.rank, place.timeout, world
        )

    def broadcast(self, tensor: Any, root: int, now: bool = False) -> EngineWork | None:
        return self._group.broadcast(tensor, root, now)

    def all_reduce(self, output: Any, input: Any, op: ReduceOp, factor: float, now: bool = False) -> EngineWork | None:
        return self._group.all_reduce(output, input, op, factor, now)

    def reduce(
        self, output: Any, input: Any, op: ReduceOp, factor: float, root: int, now: bool = False
    ) -> EngineWork | None:
        return self._group.reduce(output, input, op, factor, root, now)

    def all_gather(self, outputs: Any, input: Any, output_splits: Splits, now: bool = False) -> EngineWork | None:
        return self._group.all_gather(outputs, input, output_splits, now)

    def gather(
        self, outputs: Any, input: Any, output_splits: Splits, root: int, now: bool = False
    ) -> EngineWork | None:
        return self._group.gather(outputs, input, output_splits, root, now)

    def scatter(
        self, output: Any, inputs: Any, input_splits: Splits, root: int, now: bool = False
    ) -> EngineWork | None:
        return self._group.scatter(output, inputs, input_splits, root, now)

    def reduce_scatter(
        self, output: Any, inputs: Any, input_splits: Splits, op: ReduceOp, factor: float, now: bool = False
    ) -> EngineWork | None:
        return self._group.reduce_scatter(output, inputs, input_splits, op, factor, now)

    def all_to_all(
        self, outputs: Any, inputs: Any, output_splits: Splits, input_splits: Splits, now: bool = False
    ) -> EngineWork | None:
        return self._group.all_to_all(outputs, inputs, output_splits, input_splits, now)

    def barrier(self, now: bool = False) -> EngineWork | None:
        return self._group.barrier(now)

    def send(self, tensor: Any, peer: int, tag: int) -> EngineWork:
        return self._group.send(tensor, peer, tag)

    def receive(self, tensor: Any, peer: int | None, tag: int) -> EngineWork:
        return self._group.receive(tensor, -1 if peer is None else peer, tag)

    def refuse(self, reason: str) -> None:
        self._group.refuse(reason)

    def is_gone(self, rank: int) -> bool:
        return self._group.is_gone(rank)

    def close(self) -> None:
        self._group.close()
