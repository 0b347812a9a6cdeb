"""Whatever has the functions of a framework's ``distributed`` module that all frameworks call the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from shim.bench.libraries.base import Call
from shim.bench.libraries.collective_library import CollectiveLibrary, Tensors


class DistApi(CollectiveLibrary):
    """A subclass sets ``dist``, the module, and says which argument has an all_reduce return what is waited for."""

    dist: Any
    asynchronous: ClassVar[dict[str, bool]]

    def all_reduce(self, tensors: Tensors) -> Call:
        return partial(self.dist.all_reduce, tensors.output)

    def broadcast(self, tensors: Tensors) -> Call:
        return partial(self.dist.broadcast, tensors.output, 0)

    def barrier(self, tensors: Tensors) -> Call:
        return self.dist.barrier  # type: ignore[no-any-return]  # a module of whichever framework

    def send(self, tensor: Any, peer: int) -> Call:
        return partial(self.dist.send, tensor, peer)

    def receive(self, tensor: Any, peer: int) -> Call:
        return partial(self.dist.recv, tensor, peer)

    def start_all_reduce(self, tensor: Any) -> Callable[[], Call]:
        return lambda: self.dist.all_reduce(tensor, **self.asynchronous).wait

    def close(self) -> None:
        self.dist.destroy_process_group()
