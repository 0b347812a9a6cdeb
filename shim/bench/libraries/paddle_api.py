"""Whatever has the functions of ``paddle.distributed``, at Paddle 3: Paddle itself on gloo, and our frontend."""

from __future__ import annotations

import importlib
import os
from functools import partial
from typing import Any, ClassVar

import numpy as np

import shim
from shim.bench.libraries.base import Call, Place
from shim.bench.libraries.collective_library import Tensors, array_at
from shim.bench.libraries.dist_api import DistApi
from shim.bench.libraries.patterns import Array


class _PaddleApi(DistApi):
    asynchronous: ClassVar[dict[str, bool]] = {"sync_op": False}

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.paddle: Any = importlib.import_module("paddle")
        self.paddle.set_device("cpu")

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        tensor = self.paddle.empty([count], dtype=dtype)
        return tensor, array_at(tensor.data_ptr(), count, dtype)

    def product(self, side: int) -> Call:
        left, right = self.paddle.ones([side, side]), self.paddle.ones([side, side])
        return partial(self.paddle.mm, left, right)

    def all_gather(self, tensors: Tensors) -> Call:
        return partial(self.dist.stream.all_gather, tensors.output, tensors.input)

    def reduce_scatter(self, tensors: Tensors) -> Call:
        return partial(self.dist.reduce_scatter, tensors.output, tensors.input)

    def all_to_all(self, tensors: Tensors) -> Call:
        return partial(self.dist.alltoall_single, tensors.output, tensors.input)

    def all_gather_unequal(self, tensors: Tensors) -> Call:
        ends = np.cumsum(tensors.parts)
        places = [tensors.output[int(end - part) : int(end)] for end, part in zip(ends, tensors.parts, strict=True)]
        return partial(self.dist.all_gather, places, tensors.input)


class PaddleFrontend(_PaddleApi):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import shim.frontends.paddle_3.distributed as dist

        self.dist = dist
        dist.init_parallel_env()

    def versions(self) -> dict[str, str]:
        return {"shim": shim.__version__, "paddle": self.paddle.__version__}


class PaddleGloo(_PaddleApi):
    def __init__(self, place: Place) -> None:
        os.environ.update(
            PADDLE_DISTRI_BACKEND="gloo",
            PADDLE_TRAINER_ID=str(place.rank),
            PADDLE_TRAINERS_NUM=str(place.ranks),
            PADDLE_CURRENT_ENDPOINT=place.endpoints[place.rank],
            PADDLE_TRAINER_ENDPOINTS=",".join(place.endpoints),
        )
        super().__init__(place)
        self.dist = self.paddle.distributed
        self.dist.init_parallel_env()

    def versions(self) -> dict[str, str]:
        return {"paddle": self.paddle.__version__}
