"""CUDA's IPC between two processes, by the driver's functions alone: nothing of this project is imported.

``python ipc_by_ctypes.py LIBCUDA`` prints what it finds as JSON. It starts itself as the other process, with the handle
behind that.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any

SIZE = 1 << 20
_PEER_ACCESS = 1


class Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_ubyte * 64),)


class Cuda:
    """The driver in *library*, with a context of device 0 that is current."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        device, context = c_int(), c_void_p()
        self.call("cuInit", c_uint(0))
        self.call("cuDeviceGet", byref(device), c_int(0))
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, function: str, *arguments: Any) -> None:
        error = getattr(self._library, function)(*arguments)
        if error:
            text = c_char_p()
            self._library.cuGetErrorString(error, byref(text))
            raise OSError(f"{function} failed: {(text.value or b'').decode()} ({error})")

    def write(self, at: c_void_p, content: bytes) -> None:
        self.call("cuMemcpyHtoDAsync_v2", at, c_char_p(content), c_size_t(len(content)), None)
        self.call("cuCtxSynchronize")

    def read(self, at: c_void_p) -> bytes:
        room = ctypes.create_string_buffer(SIZE)
        self.call("cuMemcpyDtoHAsync_v2", room, at, c_size_t(SIZE), None)
        self.call("cuCtxSynchronize")
        return room.raw


def pattern(number: int) -> bytes:
    """Return SIZE bytes that differ by place and *number*."""
    return (bytes((place * 7 + number) % 251 for place in range(251)) * (SIZE // 251 + 1))[:SIZE]


def be_the_other(library: str, handle: bytes) -> None:
    """Open what the first process has made, read it, and write something else there."""
    cuda, at = Cuda(library), c_void_p()
    began = time.perf_counter()
    cuda.call("cuIpcOpenMemHandle_v2", byref(at), Handle.from_buffer_copy(handle), c_uint(_PEER_ACCESS))
    took = time.perf_counter() - began
    if cuda.read(at) != pattern(1):
        raise ValueError("the other process reads something else than was written")
    cuda.write(at, pattern(2))
    cuda.call("cuIpcCloseMemHandle", at)
    json.dump({"milliseconds to open": round(1000 * took, 3)}, sys.stdout)


def main() -> None:
    library = sys.argv[1]
    if sys.argv[2:]:
        be_the_other(library, bytes.fromhex(sys.argv[2]))
        return
    cuda, at, handle = Cuda(library), c_void_p(), Handle()
    cuda.call("cuMemAlloc_v2", byref(at), c_size_t(SIZE))
    cuda.write(at, pattern(1))
    began = time.perf_counter()
    cuda.call("cuIpcGetMemHandle", byref(handle), at)
    took = time.perf_counter() - began
    other = subprocess.run([sys.executable, __file__, library, bytes(handle).hex()], stdout=subprocess.PIPE, check=True)
    if cuda.read(at) != pattern(2):
        raise ValueError("the first process does not read what the other one has written")
    cuda.call("cuMemFree_v2", at)
    json.dump({"milliseconds to export": round(1000 * took, 3), **json.loads(other.stdout)}, sys.stdout)


if __name__ == "__main__":
    main()
