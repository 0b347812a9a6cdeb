"""NCCL's C functions, called as they are: the table is ours, so that neither torch nor a binding has to be installed.

nccl4py's raw layer has the same functions, but needs cuda.core, and looks for the library by itself. Which library it is matters:
two in one process have destroyed each other's state. So the one that the process has loaded, as torch does, is taken first, then
that of NVIDIA's wheel, and never whatever the system calls libnccl.so.2.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

from shim.core.engines.nccl.loading import functions_of, loaded, of_wheels
from shim.errors import EngineError

DTYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}


class UniqueId(ctypes.Structure):
    """What the ranks of one communicator have in common."""

    _fields_ = (("internal", c_char * 128),)


_AT, _COMM, _STREAM = c_void_p, c_void_p, c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "ncclGetVersion": (POINTER(c_int),),
    "ncclGetUniqueId": (POINTER(UniqueId),),
    "ncclCommInitRank": (POINTER(_COMM), c_int, UniqueId, c_int),
    "ncclCommDestroy": (_COMM,),
    "ncclCommAbort": (_COMM,),
    "ncclCommGetAsyncError": (_COMM, POINTER(c_int)),
    "ncclRedOpCreatePreMulSum": (POINTER(c_int), c_void_p, c_int, c_int, _COMM),
    "ncclRedOpDestroy": (c_int, _COMM),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
    "ncclAllReduce": (_AT, _AT, c_size_t, c_int, c_int, _COMM, _STREAM),
    "ncclBroadcast": (_AT, _AT, c_size_t, c_int, c_int, _COMM, _STREAM),
    "ncclReduce": (_AT, _AT, c_size_t, c_int, c_int, c_int, _COMM, _STREAM),
    "ncclAllGather": (_AT, _AT, c_size_t, c_int, _COMM, _STREAM),
    "ncclReduceScatter": (_AT, _AT, c_size_t, c_int, c_int, _COMM, _STREAM),
    "ncclSend": (_AT, c_size_t, c_int, c_int, _COMM, _STREAM),
    "ncclRecv": (_AT, c_size_t, c_int, c_int, _COMM, _STREAM),
}
_WHEELS = ("nvidia.nccl", "nvidia.cu13")


class Nccl:
    """The functions of the NCCL in the file *path*. Raises EngineError for what they refuse."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._functions = functions_of(path, _SIGNATURES)
        self._functions.ncclGetErrorString.restype = self._functions.ncclGetLastError.restype = c_char_p
        self._functions.ncclGetLastError.argtypes = (c_void_p,)
        version = c_int()
        self.call("ncclGetVersion", byref(version))
        self.version_number = number = version.value
        self.version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def call(self, function: str, *arguments: Any) -> None:
        """Call *function*."""
        error = getattr(self._functions, function)(*arguments)
        if error:
            raise EngineError(f"NCCL's {function} failed: {self.text_of(error)}")

    @contextmanager
    def group(self) -> Iterator[None]:
        """Have NCCL carry out as one what is called within."""
        self.call("ncclGroupStart")
        try:
            yield
        finally:
            self.call("ncclGroupEnd")

    def text_of(self, error: int) -> str:
        """Return what NCCL calls *error*, and what it has said last."""
        name = self._functions.ncclGetErrorString(error).decode(errors="replace")
        more = (self._functions.ncclGetLastError(None) or b"").decode(errors="replace")
        return f"{name}{': ' * bool(more)}{more}"

    def async_error(self, communicator: c_void_p) -> int:
        """Return the number of the error that *communicator* has met in the background; 0 is none."""
        error = c_int()
        self.call("ncclCommGetAsyncError", communicator, byref(error))
        return error.value


def library() -> Nccl:
    """Return the NCCL of this process. Raises EngineError where there is none, or more than one."""
    there = loaded("libnccl.so")
    if len(there) > 1:
        raise EngineError(
            f"this process has loaded more than one NCCL, which destroy each other's state: {', '.join(there)}\n"
            "Import only the framework whose NCCL is to be used, or have both use the same file."
        )
    found = there or of_wheels(_WHEELS, "libnccl.so*")
    if not found:
        raise EngineError(
            "CUDA tensors need NCCL, and none is loaded or installed\nInstall nvidia-nccl-cu12 or nvidia-nccl-cu13, or import torch first."
        )
    return _opened(found[0])


@cache
def _opened(path: str) -> Nccl:
    return Nccl(path)
