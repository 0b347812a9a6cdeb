"""Our frontend of ``mindspore.mint.distributed``, with MindSpore's tensors. MindSpore itself has no collectives on a CPU there."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any, ClassVar

import shim
from shim.bench.libraries.base import Call, Place
from shim.bench.libraries.collective_library import Tensors, array_at
from shim.bench.libraries.dist_api import DistApi
from shim.bench.libraries.patterns import Array


class MindSporeFrontend(DistApi):
    asynchronous: ClassVar[dict[str, bool]] = {"async_op": True}

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import shim.frontends.mindspore.mint.distributed as dist

        self.mindspore: Any = importlib.import_module("mindspore")
        self.dist = dist
        dist.init_process_group()

    def versions(self) -> dict[str, str]:
        return {"shim": shim.__version__, "mindspore": self.mindspore.__version__}

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        tensor = self.mindspore.mint.zeros(count, dtype=getattr(self.mindspore, dtype))
        return tensor, array_at(tensor.data_ptr(), count, dtype)

    def product(self, side: int) -> Call:
        mint = self.mindspore.mint
        left, right = mint.ones((side, side)), mint.ones((side, side))
        return lambda: mint.matmul(left, right).data_ptr()  # which waits for the operator

    def all_gather(self, tensors: Tensors) -> Call:
        return partial(self.dist.all_gather_into_tensor, tensors.output, tensors.input)

    def reduce_scatter(self, tensors: Tensors) -> Call:
        return partial(self.dist.reduce_scatter_tensor, tensors.output, tensors.input)

    def all_to_all(self, tensors: Tensors) -> Call:
        return partial(self.dist.all_to_all_single, tensors.output, tensors.input)

    def all_gather_unequal(self, tensors: Tensors) -> Call:
        return partial(self.dist.all_gather_into_tensor_uneven, tensors.output, tensors.input, tensors.parts)
