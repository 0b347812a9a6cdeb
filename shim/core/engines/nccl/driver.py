"""What the engine asks of CUDA: contexts, streams and events, by the functions of the driver, which every machine with a GPU has.

Streams of the runtime, which the frameworks use, are the driver's too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any

from shim.core.engines.nccl.loading import functions_of, loaded
from shim.errors import EngineError


class _Uuid(Structure):
    """What names a device, or a part of one, on every host."""

    _fields_ = (("bytes", c_ubyte * 16),)


class IpcHandle(Structure):
    """What another process opens memory of this one with."""

    _fields_ = (("reserved", c_ubyte * 64),)


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetUuid_v2": (POINTER(_Uuid), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuDeviceGetDefaultMemPool": (POINTER(c_void_p), c_int),
    "cuMemPoolGetAttribute": (c_void_p, c_int, POINTER(c_uint64)),
    "cuMemPoolSetAttribute": (c_void_p, c_int, POINTER(c_uint64)),
    "cuMemAlloc_v2": (POINTER(c_void_p), c_size_t),
    "cuMemFree_v2": (c_void_p,),
    "cuMemAllocAsync": (POINTER(c_void_p), c_size_t, c_void_p),
    "cuMemFreeAsync": (c_void_p, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamIsCapturing": (c_void_p, POINTER(c_int)),
    "cuThreadExchangeStreamCaptureMode": (POINTER(c_int),),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventDestroy_v2": (c_void_p,),
    "cuIpcGetMemHandle": (POINTER(IpcHandle), c_void_p),
    "cuIpcOpenMemHandle_v2": (POINTER(c_void_p), IpcHandle, c_uint),
    "cuIpcCloseMemHandle": (c_void_p,),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}
_NON_BLOCKING = 1  # of a stream: the legacy default stream does not wait for it, nor it for that
_NO_TIMING = 2  # of an event
_RELAXED = 2  # of a thread's mode of capture
_MAJOR, _MINOR = 75, 76  # attributes of a device
_RELEASE_THRESHOLD = 4  # an attribute of a pool
_KEPT = 64 << 20  # bytes of a device's pool
_NOT_READY = 600


class Driver:
    """The functions of the driver in *library*. Raises EngineError for what they refuse."""

    def __init__(self, library: str) -> None:
        self._functions = functions_of(library, _SIGNATURES)
        self._contexts: dict[int, c_void_p] = {}
        self._process = os.getpid()

    def call(self, function: str, *arguments: Any) -> None:
        """Call *function*."""
        error = getattr(self._functions, function)(*arguments)
        if error:
            raise EngineError(f"CUDA's {function} failed: {self._text_of(error)}")

    def _text_of(self, error: int) -> str:
        text = c_char_p()
        self._functions.cuGetErrorString(error, byref(text))
        return f"{(text.value or b'').decode(errors='replace')} ({error})"

    @contextmanager
    def on(self, number: int) -> Iterator[None]:
        """Have the calling thread's calls be about device *number*, in the context that the frameworks use."""
        self.call("cuCtxPushCurrent_v2", self._context_of(number))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", byref(c_void_p()))

    def _context_of(self, number: int) -> c_void_p:
        if number not in self._contexts:
            context = c_void_p()
            self.call("cuDevicePrimaryCtxRetain", byref(context), self._device(number))
            self._keep_pooled(number)
            self._contexts[number] = context  # kept, as the frameworks keep it
        return self._contexts[number]

    def _keep_pooled(self, number: int) -> None:
        """Have what ``room`` has given stay with the process: by default a pool gives all of it back whenever a stream is waited for."""
        pool, most = c_void_p(), c_uint64()
        self.call("cuDeviceGetDefaultMemPool", byref(pool), self._device(number))
        self.call("cuMemPoolGetAttribute", pool, _RELEASE_THRESHOLD, byref(most))
        if most.value < _KEPT:
            self.call("cuMemPoolSetAttribute", pool, _RELEASE_THRESHOLD, byref(c_uint64(_KEPT)))

    def identity_of(self, number: int) -> bytes:
        """Return what names device *number* on every host, in 16 bytes."""
        found = _Uuid()
        self.call("cuDeviceGetUuid_v2", byref(found), self._device(number))
        return bytes(found)

    def capability_of(self, number: int) -> int:
        """Return what code device *number* understands: 90 is compute capability 9.0."""
        major, minor = c_int(), c_int()
        for part, attribute in ((major, _MAJOR), (minor, _MINOR)):
            self.call("cuDeviceGetAttribute", byref(part), attribute, self._device(number))
        return 10 * major.value + minor.value

    def _device(self, number: int) -> c_int:
        device = c_int()
        self.call("cuDeviceGet", byref(device), number)
        return device

    @contextmanager
    def room(self, size: int, stream: Any) -> Iterator[int]:
        """Give *size* bytes of the current device's memory for what is put on *stream* meanwhile."""
        at = c_void_p()
        self.call("cuMemAllocAsync", byref(at), size, stream)
        try:
            yield at.value or 0
        finally:
            self.call("cuMemFreeAsync", at, stream)

    def is_ready(self, event: c_void_p) -> bool:
        """Tell whether what an event was recorded behind has ended."""
        error = self._functions.cuEventQuery(event)
        if error not in (0, _NOT_READY):
            raise EngineError(f"CUDA's cuEventQuery failed: {self._text_of(error)}")
        return bool(error == 0)

    def is_capturing(self, stream: Any) -> bool:
        """Tell whether what is put on *stream* becomes part of a graph, and is not done."""
        status = c_int()
        self.call("cuStreamIsCapturing", stream, byref(status))
        return status.value != 0

    @contextmanager
    def beside_captures(self) -> Iterator[None]:
        """Have nothing that this thread does meanwhile end a graph that another one captures, as a look at an event would otherwise."""
        mode = c_int(_RELAXED)
        self._functions.cuThreadExchangeStreamCaptureMode(byref(mode))  # which becomes the one that there was
        try:
            yield
        finally:
            self._functions.cuThreadExchangeStreamCaptureMode(
                byref(mode)
            )  # tells of earlier errors, too, which others raise

    def current_context(self) -> c_void_p:
        """Return the calling thread's context."""
        context = c_void_p()
        self.call("cuCtxGetCurrent", byref(context))
        return context

    def forget(self, event: c_void_p, context: c_void_p) -> None:
        """Let *event* of *context* go, in whatever thread, unless this is a forked child, in which CUDA does not work."""
        if os.getpid() != self._process or self._functions.cuCtxPushCurrent_v2(context):
            return
        self._functions.cuEventDestroy_v2(event)
        self._functions.cuCtxPopCurrent_v2(byref(c_void_p()))


class Stream:
    """A stream of our own, on the current device."""

    def __init__(self, cuda: Driver) -> None:
        self._cuda = cuda
        self.handle = c_void_p()
        cuda.call("cuStreamCreate", byref(self.handle), _NON_BLOCKING)

    def close(self) -> None:
        """Let it go; what is in it goes on."""
        self._cuda.call("cuStreamDestroy_v2", self.handle)


class Event:
    """A point in a stream of the current device that others can wait for. ``is_cut_off`` says that what it is behind was ended before.

    In a stream that is captured into a graph it is no point in time: CUDA refuses to say whether it is reached (error 907).
    """

    is_cut_off = is_captured = False

    def __init__(self, cuda: Driver) -> None:
        self._cuda = cuda
        self.handle = c_void_p()
        self._context = cuda.current_context()
        cuda.call("cuEventCreate", byref(self.handle), _NO_TIMING)

    def record(self, stream: Any) -> None:
        """Have it be behind what is in *stream* now."""
        self.is_captured = self._cuda.is_capturing(stream)
        self._cuda.call("cuEventRecord", self.handle, stream)

    def make_wait(self, stream: Any) -> None:
        """Have what comes next in *stream* begin after it."""
        self._cuda.call("cuStreamWaitEvent", stream, self.handle, 0)

    def is_reached(self) -> bool:
        return self.is_captured or self._cuda.is_ready(self.handle)

    def __del__(self) -> None:  # who waits for it goes on waiting
        if self.handle:
            self._cuda.forget(self.handle, self._context)


def find_driver() -> Driver:
    """Return the functions of this process's driver, which may not have begun: a process that forks must not. Raises EngineError where there is none."""
    return Driver((loaded("libcuda.so") or ["libcuda.so.1"])[0])


@cache
def driver() -> Driver:
    """Return the driver of this process. Raises EngineError where there is none."""
    found = find_driver()
    found.call("cuInit", 0)
    return found
