"""Whatever has the functions of a framework's ``distributed`` module: torch and Paddle themselves on gloo, and our frontends, mint's among them."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

import shim
from shim.bench.libraries.base import Call, CannotError, CollectiveLibrary, Place, Tensors, array_at, numpy_tensor
from shim.bench.libraries.patterns import Array
from shim.bench.machine import bind_to_share


class DistApi(CollectiveLibrary):
    """A subclass sets ``dist``, the module, and says which argument has an all_reduce return what is waited for.

    It has the names of the functions whose input and output are one tensor each.
    """

    dist: Any
    asynchronous: ClassVar[dict[str, bool]]
    gathering: ClassVar[str]
    scattering: ClassVar[str]
    exchanging: ClassVar[str]

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

    def all_gather(self, tensors: Tensors) -> Call:
        return self._of(self.gathering, tensors)

    def reduce_scatter(self, tensors: Tensors) -> Call:
        return self._of(self.scattering, tensors)

    def all_to_all(self, tensors: Tensors) -> Call:
        return self._of(self.exchanging, tensors)

    def _of(self, name: str, tensors: Tensors) -> Call:
        return partial(attrgetter(name)(self.dist), tensors.output, tensors.input)

    def all_gather_unequal(self, tensors: Tensors) -> Call:
        ends = np.cumsum(tensors.parts)
        places = [tensors.output[int(end - part) : int(end)] for end, part in zip(ends, tensors.parts, strict=True)]
        return partial(self.dist.all_gather, places, tensors.input)

    def start_all_reduce(self, tensor: Any) -> Callable[[], Call]:
        return lambda: self.dist.all_reduce(tensor, **self.asynchronous).wait

    def close(self) -> None:
        self.dist.destroy_process_group()


_BEFORE_2_13 = {"all_gather_single": "all_gather_into_tensor", "reduce_scatter_single": "reduce_scatter_tensor"}
_TUNED = "gloo_tuned"  # what the backend is registered as


class _TorchApi(DistApi):
    asynchronous: ClassVar[dict[str, bool]] = {"async_op": True}
    gathering, scattering, exchanging = "all_gather_single", "reduce_scatter_single", "all_to_all_single"

    def _of(self, name: str, tensors: Tensors) -> Call:
        return super()._of(name if hasattr(self.dist, name) else _BEFORE_2_13.get(name, name), tensors)


class _WithTorchTensors(_TorchApi):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import torch

        self.torch = torch
        torch.set_num_threads(1)

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        tensor = self.torch.empty(count, dtype=getattr(self.torch, dtype))
        return tensor, array_at(tensor.data_ptr(), count, dtype)

    def product(self, side: int) -> Call:
        left, right = self.torch.ones(side, side), self.torch.ones(side, side)
        return partial(self.torch.mm, left, right, out=self.torch.empty(side, side))


class _OfFrontend(_TorchApi):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import shim.frontends.torch.distributed as dist

        self.dist = dist
        dist.init_process_group()


class TorchFrontend(_OfFrontend, _WithTorchTensors):
    def versions(self) -> dict[str, str]:
        return {"shim": shim.__version__, "torch": self.torch.__version__}


class TorchFrontendShared(TorchFrontend):
    """The same with tensors that the other ranks read where they are."""

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        tensor = shim.empty(count, dtype, like="torch")
        return tensor, array_at(tensor.data_ptr(), count, dtype)


class TorchFrontendWithNumpy(_OfFrontend):
    def versions(self) -> dict[str, str]:
        return {"shim": shim.__version__, "numpy": np.__version__}

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        return numpy_tensor(count, dtype, _ml_bfloat16)


def _ml_bfloat16(count: int) -> tuple[Any, Array]:
    if importlib.util.find_spec("ml_dtypes") is None:
        raise CannotError("numpy has no bfloat16, and ml_dtypes, which adds it, is not installed")
    tensor: Array = np.empty(count, importlib.import_module("ml_dtypes").bfloat16)
    return tensor, tensor.view(np.uint16)


class Gloo(_WithTorchTensors):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import torch.distributed as dist

        self.dist = dist
        self.connect()

    def connect(self) -> None:
        place = self.place
        store = f"file://{place.folder}/gloo"
        self.dist.init_process_group("gloo", init_method=store, rank=place.rank, world_size=place.ranks)

    def versions(self) -> dict[str, str]:
        return {"torch": self.torch.__version__}


class GlooTuned(Gloo):
    """gloo on the loopback interface by name, with a single thread of its own, each rank bound to its share of the processors where there are enough.

    ``init_process_group`` hands gloo no options, which a backend that is registered by the user can be made with.
    """

    def __init__(self, place: Place) -> None:
        if place.ranks <= place.processors:
            bind_to_share(place.rank, place.ranks)  # before torch has threads, which inherit it
        super().__init__(place)

    def connect(self) -> None:
        place = self.place
        self.dist.Backend.register_backend(_TUNED, self._backend, devices=["cpu"])
        store = f"file://{place.folder}/gloo"
        self.dist.init_process_group(_TUNED, init_method=store, rank=place.rank, world_size=place.ranks)

    def _backend(self, store: Any, rank: int, ranks: int, timeout: timedelta) -> Any:
        gloo = self.dist.ProcessGroupGloo
        options = gloo._Options()
        options._devices = [gloo.create_device(interface="lo")]
        options._threads = 1
        options._timeout = timeout
        return gloo(store, rank, ranks, options)


class _PaddleApi(DistApi):
    asynchronous: ClassVar[dict[str, bool]] = {"sync_op": False}
    gathering, scattering, exchanging = "stream.all_gather", "reduce_scatter", "alltoall_single"

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


class MindSporeFrontend(DistApi):
    """Our frontend of ``mindspore.mint.distributed``. MindSpore itself has no collectives on a CPU there."""

    asynchronous: ClassVar[dict[str, bool]] = {"async_op": True}
    gathering, scattering, exchanging = "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"

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

    def all_gather_unequal(self, tensors: Tensors) -> Call:
        return partial(self.dist.all_gather_into_tensor_uneven, tensors.output, tensors.input, tensors.parts)
