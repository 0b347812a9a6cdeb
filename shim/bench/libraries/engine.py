"""Our engine without a frontend."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import shim
from shim.bench.libraries.base import Call, CannotError, CollectiveLibrary, Place, Tensors, array_at, numpy_tensor
from shim.bench.libraries.patterns import Array
from shim.core import groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp


class Engine(CollectiveLibrary):
    """``shim.core``'s engine, whose methods carry a collective out at once; of a message it returns what is waited for."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.group = groups.enter_world(Caller("shim bench"), "bench")
        self.calls: Any = self.group.engine
        self.op: Any = ReduceOp.SUM

    def versions(self) -> dict[str, str]:
        return {"shim": shim.__version__, "numpy": np.__version__}

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        return numpy_tensor(count, dtype, _torch_bfloat16)

    def all_reduce(self, tensors: Tensors) -> Call:
        return partial(self.calls.all_reduce, tensors.output, tensors.input, self.op, 1.0, True)

    def all_gather(self, tensors: Tensors) -> Call:
        return partial(self.calls.all_gather, tensors.output, tensors.input, None, True)

    def reduce_scatter(self, tensors: Tensors) -> Call:
        return partial(self.calls.reduce_scatter, tensors.output, tensors.input, self.op, 1.0, None, True)

    def all_to_all(self, tensors: Tensors) -> Call:
        return partial(self.calls.all_to_all, tensors.output, tensors.input, None, None, True)

    def broadcast(self, tensors: Tensors) -> Call:
        return partial(self.calls.broadcast, tensors.output, 0, True)

    def barrier(self, tensors: Tensors) -> Call:
        return partial(self.calls.barrier, True)

    def send(self, tensor: Any, peer: int) -> Call:
        return self._waited(self.calls.send, tensor, peer, 0)

    def receive(self, tensor: Any, peer: int) -> Call:
        return self._waited(self.calls.receive, tensor, peer, 0)

    def all_gather_unequal(self, tensors: Tensors) -> Call:
        return partial(self.calls.all_gather, tensors.output, tensors.input, tensors.parts, True)

    def start_all_reduce(self, tensor: Any) -> Callable[[], Call]:
        def start() -> Call:
            work = self.calls.all_reduce(tensor, tensor, self.op, 1.0)
            work.start()
            return work.wait  # type: ignore[no-any-return]  # self.calls is Any, so that tests can put others there

        return start

    def close(self) -> None:
        groups.leave_world("bench")

    @staticmethod
    def _waited(prepare: Callable[..., Any], *arguments: Any) -> Call:
        prepared = partial(prepare, *arguments)
        return lambda: prepared().wait()


def _torch_bfloat16(count: int) -> tuple[Any, Array]:
    if importlib.util.find_spec("torch") is None:
        raise CannotError("numpy has no bfloat16, and torch, whose tensors would be taken, is not installed")
    import torch

    tensor = torch.empty(count, dtype=torch.bfloat16)
    return tensor, array_at(tensor.data_ptr(), count, "bfloat16")
