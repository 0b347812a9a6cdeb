"""Tensors on the fake CUDA devices of ``fakes/``, and the fake libraries themselves, which are compiled when first needed."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from dlpack_structures import DLTensor, ManagedTensor, capsule_of

from shim.core import groups
from shim.core.callers import Caller
from shim.core.engines.nccl import driver, kernels, library
from shim.core.groups import ProcessGroup

_SOURCES = Path(__file__).with_name("fakes")
_CUDA = 2
_CODES = {"b": (6, 8), "i": (0, None), "u": (1, None), "f": (2, None), "c": (5, None)}


@cache
def load() -> Any:
    """Load the fakes, as a framework that was imported before would have loaded the real ones, and return the fake driver."""
    cuda = ctypes.CDLL(str(_FOLDER / "libcuda.so.1"), ctypes.RTLD_GLOBAL)
    for name in ("libnccl.so.2", "libnvrtc.so.12"):
        ctypes.CDLL(str(_FOLDER / name), ctypes.RTLD_GLOBAL)
    for module in (driver, kernels, library):  # where torch is built for CUDA, the real ones are loaded too
        module.loaded = _loaded
    assert cuda.cuInit(0) == 0
    return cuda


def _loaded(name: str) -> list[str]:
    return [str(file) for file in _FOLDER.glob(f"{name}.*")]


def _compiled() -> Path:
    """Return the folder of the compiled fakes, which one process makes while the others that need it wait."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sorted(_SOURCES.iterdir()))).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"shim-fakes-{os.geteuid()}-{digest}")
    folder.mkdir(mode=0o700, exist_ok=True)
    with Path(folder, "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not Path(folder, "done").exists():
            cuda = folder / "libcuda.so.1"
            _compile(cuda, "fake_cuda.cpp", "fake_ipc.cpp", "fake_kernels.cpp", "fake_streams.cpp")
            _compile(folder / "libnvrtc.so.12", "fake_nvrtc.cpp")
            _compile(folder / "libnvrtc-builtins.so.12", "fake_builtins.cpp")
            _compile(folder / "libnccl.so.2", "fake_nccl.cpp", "exchanges.cpp", cuda)
            Path(folder, "done").touch()
    return folder


def _compile(path: Path, *inputs: str | Path) -> None:
    """Compile a library that takes nothing from a real one, and that is not taken for it."""
    apart = ("-Wl,-Bsymbolic", f"-Wl,-soname,fake-{path.name}")
    subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", *apart, "-o", path, *inputs], check=True, cwd=_SOURCES)


for _file in Path("/dev/shm").glob("fake_nccl_*_*"):
    if not Path("/proc", _file.name.split("_")[2]).exists():  # whose rank died before the others came
        _file.unlink(missing_ok=True)
_FOLDER = _compiled()  # by the test process, which imports this before its ranks do: their time is for the test


@contextmanager
def current(number: int) -> Iterator[Any]:
    cuda, context = load(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number) == 0
    assert cuda.cuCtxPushCurrent_v2(context) == 0
    yield cuda
    assert cuda.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0


LEGACY, PER_THREAD = 1, 2
_streams = threading.local()  # each thread's current one, as frameworks have it


class Stream:
    """A stream of the program's on device *number*: one for which the others do not wait, or a *default* one, LEGACY or PER_THREAD."""

    def __init__(self, number: int, default: int = 0) -> None:
        self.number, self.handle = number, ctypes.c_void_p(default)
        if not default:
            with current(number) as cuda:
                assert cuda.cuStreamCreate(ctypes.byref(self.handle), 1) == 0

    def synchronize(self) -> None:
        with current(self.number) as cuda:
            assert cuda.cuStreamSynchronize(self.handle) == 0

    def is_idle(self) -> bool:
        with current(self.number) as cuda:
            return bool(cuda.cuStreamQuery(self.handle) == 0)

    @contextmanager
    def captured(self, is_kept: bool = False) -> Iterator[ctypes.c_void_p]:
        """Capture what is put on the stream within into a graph, and assert that nobody has ended that by a look at the device.

        Gives where the graph is put; one that *is kept* is there until ``cuGraphDestroy``.
        """
        graph = ctypes.c_void_p()
        with current(self.number) as cuda:
            assert cuda.cuStreamBeginCapture_v2(self.handle, 0) == 0
            try:
                yield graph
            finally:
                assert cuda.cuStreamEndCapture(self.handle, ctypes.byref(graph)) == 0
                if not is_kept:
                    assert cuda.cuGraphDestroy(graph) == 0


@contextmanager
def on_stream(stream: Stream) -> Iterator[None]:
    """Have *stream* be the current one."""
    _streams.handle = stream.handle.value
    yield
    _streams.handle = 0


class FakeTensor:
    """A contiguous tensor on fake device *number* with the elements of *array*. Its ``values`` are copied from there, after what its streams do.

    As a framework's, its memory is used again when it is let go, for what comes next on the stream that was current when it was made.
    """

    _whole: FakeTensor | None = None  # whose memory this one's is a part of

    def __init__(self, array: Any, number: int = 0) -> None:
        given = np.ascontiguousarray(array)
        self.number, self.shape, self.dtype = number, given.shape, given.dtype
        self._address, self._stream = ctypes.c_void_p(), ctypes.c_void_p(getattr(_streams, "handle", 0))
        self._bytes = max(1, given.nbytes)
        with current(number) as cuda:
            assert cuda.cuMemAlloc_v2(ctypes.byref(self._address), self._bytes) == 0
            if given.nbytes:
                assert (
                    cuda.cuMemcpyHtoDAsync_v2(self._address, given.ctypes.data_as(ctypes.c_void_p), given.nbytes, None)
                    == 0
                )
                assert cuda.cuStreamSynchronize(None) == 0
        self._shape = (ctypes.c_int64 * max(1, given.ndim))(*given.shape)

    def parts(self, count: int) -> list[FakeTensor]:
        """Return *count* equal parts, which lie one after the other in the memory of this tensor."""
        made = []
        for place, elements in enumerate(np.split(np.empty(self.shape, self.dtype), count)):
            part = object.__new__(FakeTensor)
            part.number, part.shape, part.dtype, part._whole = self.number, elements.shape, self.dtype, self
            part._address = ctypes.c_void_p((self._address.value or 0) + place * elements.nbytes)
            part._shape = (ctypes.c_int64 * max(1, elements.ndim))(*elements.shape)
            made.append(part)
        return made

    def values(self) -> Any:
        """Return what the device holds when what is on it now has ended."""
        copied = np.empty(self.shape, self.dtype)
        with current(self.number) as cuda:
            assert cuda.cuCtxSynchronize() == 0
            if copied.nbytes:
                assert (
                    cuda.cuMemcpyDtoHAsync_v2(
                        copied.ctypes.data_as(ctypes.c_void_p), self._address, copied.nbytes, None
                    )
                    == 0
                )
                assert cuda.cuStreamSynchronize(None) == 0
        return copied

    def describe(self, out: DLTensor) -> None:
        """Fill in what DLPack says of this tensor."""
        if self.dtype.name == "bfloat16":
            code, bits = 4, 16
        else:
            code, fixed = _CODES[self.dtype.kind]
            bits = fixed or 8 * self.dtype.itemsize
        out.data, out.device_type, out.device_id = self._address.value, _CUDA, self.number
        out.ndim, out.code, out.bits, out.lanes = len(self.shape), code, bits, 1
        out.shape, out.strides, out.byte_offset = ctypes.addressof(self._shape), None, 0

    def as_capsule(self) -> Any:
        """Return what ``__dlpack__`` gives, which this tensor outlives."""
        self._managed = ManagedTensor(1, 0, None, None, 0)
        self.describe(self._managed.tensor)
        return capsule_of(self._managed, b"dltensor_versioned")

    def __del__(self) -> None:
        if self._whole is None and getattr(self, "_address", None):
            with current(self.number) as cuda:
                cuda.cuMemsetD8Async(self._address, ctypes.c_ubyte(0xA5), ctypes.c_size_t(self._bytes), self._stream)
                cuda.cuMemFreeAsync(self._address, self._stream)


@contextmanager
def world() -> Iterator[ProcessGroup]:
    """Give the world of a test that has the fakes loaded."""
    load()
    group = groups.enter_world(Caller("test"), "test")
    try:
        yield group
    finally:
        groups.leave_world("test")


def check(tensor: Any, expected: Any) -> None:
    """Assert that *tensor*, on a device or not, has the elements of *expected*."""
    np.testing.assert_array_equal(tensor.values() if isinstance(tensor, FakeTensor) else tensor, expected)


_DESCRIBE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class _Exchange(ctypes.Structure):
    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)),
        *(("allocate", ctypes.c_void_p), ("export", ctypes.c_void_p), ("take", ctypes.c_void_p)),
        *(("describe", _DESCRIBE), ("current_work_stream", _STREAM)),
    )


def _describe(tensor: Any, out: Any) -> int:
    tensor.describe(out.contents)
    return 0


def _current_stream(_type: int, _number: int, out: Any) -> int:
    out[0] = getattr(_streams, "handle", 0)
    return 0


_exchange = _Exchange(1, 3, None, None, None, None, _DESCRIBE(_describe), _STREAM(_current_stream))
FakeTensor.__dlpack_c_exchange_api__ = capsule_of(_exchange, b"dlpack_exchange_api")  # type: ignore[attr-defined]
