"""What the checks ask of a kind of tensors on the first GPU: to make and read them, streams, work that takes long, graphs.

A kind imports its framework when it is begun. One process uses one kind.
"""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from cuda_tensors import KINDS

LONG = 1.5  # seconds, about, of work that takes long
_CYCLES = 3_000_000_000
_SPIN = """extern "C" __global__ void spin(long long cycles) {
  const long long until = clock64() + cycles;
  while (clock64() < until) {
  }
}"""


class DeviceKind(ABC):
    """Makes tensors of one kind; what has no stream of its own in its name is put on the current one."""

    name: str
    without: tuple[str, ...] = ()  # dtypes that it lacks
    device: Any = None  # what a frontend's functions take for the device, where the framework has such
    largest_growth = 8 << 20  # of ``held`` that is no leak: libraries keep some memory

    def begin(self) -> str:
        """Load the framework and begin CUDA. Returns what is missing, if anything."""
        return ""

    def make(self, array: Any) -> Any:
        """Return a tensor with the elements of *array*."""
        return KINDS[self.name].make(array)

    def values(self, tensor: Any) -> Any:
        """Return an array with the elements of *tensor*, after what its stream does."""
        return KINDS[self.name].values(tensor)

    @abstractmethod
    def split(self, tensor: Any, sizes: list[int]) -> list[Any]:
        """Return *tensor* in parts of so many rows."""

    @abstractmethod
    def stream(self) -> Any:
        """Return a context in which a new stream is the current one. It gives a function that tells whether that is idle."""

    @abstractmethod
    def keep_busy(self) -> None:
        """Put work of LONG seconds on the current stream."""

    @abstractmethod
    def fill(self, tensor: Any, value: float) -> None:
        """Fill *tensor*."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for the device."""

    @abstractmethod
    def held(self) -> int:
        """Return how much of the device's memory is taken, in bytes."""

    @abstractmethod
    def capture(self, body: Callable[[], None]) -> Callable[[], None] | None:
        """Capture what *body* does in a graph, and return what replays it, if that can be had."""


class TorchKind(DeviceKind):
    name = "torch"

    def begin(self) -> str:
        import torch

        if not torch.cuda.is_available():
            return f"torch {torch.__version__} has no CUDA here"
        torch.ones(1, device="cuda")
        self._torch, self.device = torch, torch.device("cuda", 0)
        return ""

    def split(self, tensor: Any, sizes: list[int]) -> list[Any]:
        return list(tensor.split(sizes))

    @contextmanager
    def stream(self) -> Iterator[Callable[[], bool]]:
        stream = self._torch.cuda.Stream()
        with self._torch.cuda.stream(stream):
            yield stream.query

    def keep_busy(self) -> None:
        self._torch.cuda._sleep(_CYCLES)

    def fill(self, tensor: Any, value: float) -> None:
        tensor.fill_(value)

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def held(self) -> int:
        free, total = self._torch.cuda.mem_get_info()
        return int(total - free)

    def capture(self, body: Callable[[], None]) -> Callable[[], None]:
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            body()
        return lambda: graph.replay()


class CupyKind(DeviceKind):
    name = "cupy"
    without = KINDS["cupy"].without

    def begin(self) -> str:
        import cupy

        try:
            cupy.ones(1)
        except Exception as error:  # of its own classes, one for each library
            return f"CuPy {cupy.__version__} has no CUDA here: {error}"
        self._cupy = cupy
        return ""

    def split(self, tensor: Any, sizes: list[int]) -> list[Any]:
        return list(self._cupy.split(tensor, np.cumsum(sizes)[:-1].tolist()))

    @contextmanager
    def stream(self) -> Iterator[Callable[[], bool]]:
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            yield lambda: bool(stream.done)

    def keep_busy(self) -> None:
        self._cupy.RawKernel(_SPIN, "spin")((1,), (1,), (np.int64(_CYCLES),))

    def fill(self, tensor: Any, value: float) -> None:
        tensor.fill(value)

    def synchronize(self) -> None:
        self._cupy.cuda.runtime.deviceSynchronize()

    def held(self) -> int:
        free, total = self._cupy.cuda.runtime.memGetInfo()
        return int(total - free)

    def capture(self, body: Callable[[], None]) -> Callable[[], None]:
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                body()
            finally:
                graph = stream.end_capture()
        return lambda: graph.launch(stream)


class FakeKind(DeviceKind):
    """Tensors on the driver of the tests' own, whose folder has to be among those that modules are looked for in."""

    name = "fake"
    without = ("float8_e4m3fn", "float8_e5m2")
    largest_growth = 0

    def begin(self) -> str:
        import fake_device

        self._fakes = fake_device
        fake_device.load()
        self._kept: list[Any] = []  # what work that is under way reads: the fakes wait for it before they free it
        self._stream: Any = None
        return ""

    def make(self, array: Any) -> Any:
        return self._fakes.FakeTensor(array)

    def values(self, tensor: Any) -> Any:
        return tensor.values()

    def split(self, tensor: Any, sizes: list[int]) -> list[Any]:
        """See ``DeviceKind``. They are copies."""
        return [self.make(part) for part in np.split(tensor.values(), np.cumsum(sizes)[:-1])]

    @contextmanager
    def stream(self) -> Iterator[Callable[[], bool]]:
        self._stream = made = self._fakes.Stream(0)
        with self._fakes.on_stream(made):
            yield made.is_idle

    def keep_busy(self) -> None:
        from gates import Gate

        gate = Gate()
        self._kept.append(gate)
        gate.close(self._stream)
        threading.Timer(LONG, gate.open).start()

    def fill(self, tensor: Any, value: float) -> None:
        source = self.make(np.full(tensor.shape, value, tensor.dtype))
        self._kept.append(source)
        to, of = (ctypes.c_void_p(self._address(one)) for one in (tensor, source))
        size = ctypes.c_size_t(int(np.prod(tensor.shape)) * tensor.dtype.itemsize)
        with self._fakes.current(0) as cuda:
            assert cuda.cuMemcpyDtoDAsync_v2(to, of, size, self._stream.handle) == 0

    @staticmethod
    def _address(tensor: Any) -> int:
        from dlpack_structures import DLTensor

        described = DLTensor()
        tensor.describe(described)
        return int(described.data)

    def synchronize(self) -> None:
        with self._fakes.current(0) as cuda:
            assert cuda.cuCtxSynchronize() == 0
            self._kept.clear()  # tensors are let go on their streams
            assert cuda.cuCtxSynchronize() == 0

    def held(self) -> int:
        """Return how many pieces of the fake device's memory this process has, as the fakes do not tell bytes."""
        return Path("/proc/self/maps").read_text().count("memfd:fake_device")

    def capture(self, body: Callable[[], None]) -> None:
        """See ``DeviceKind``. The fakes replay nothing."""
        with self.stream(), self._stream.captured():
            body()


_KINDS: dict[str, type[DeviceKind]] = {kind.name: kind for kind in (TorchKind, CupyKind, FakeKind)}
_begun: dict[str, DeviceKind] = {}


class NotThereError(Exception):
    """What was asked for cannot be had here."""


def kind_named(name: str) -> DeviceKind:
    """Return the kind called *name*, begun in this process. Raises NotThereError where something is missing."""
    if name not in _begun:
        kind = _KINDS[name]()
        if missing := kind.begin():
            raise NotThereError(missing)
        _begun[name] = kind
    return _begun[name]
