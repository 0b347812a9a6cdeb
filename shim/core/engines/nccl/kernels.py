"""The device's code for ranks that share a device, the one kernel that combines elements: compiled when it is first needed.

NVIDIA's compiler for it is NVRTC, called by its C functions. torch's packages for CUDA bring it along.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from ctypes import POINTER, Structure, addressof, byref, c_char_p, c_double, c_int, c_size_t, c_ulonglong, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from shim.core.engines.nccl.driver import Driver
from shim.core.engines.nccl.loading import functions_of, load_beside, loaded, of_wheels
from shim.errors import EngineError

MOST_RANKS = 64
SCALED = 5  # beside NCCL's operations: one area's elements times a factor
_SOURCE = Path(__file__).with_name("combine.cu")
_THREADS, _MOST_BLOCKS = 256, 1024
_functions: dict[tuple[int, int, int], c_void_p] = {}  # of the process, by the device, the dtype and the operation
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "nvrtcGetNumSupportedArchs": (POINTER(c_int),),
    "nvrtcGetSupportedArchs": (POINTER(c_int),),
    "nvrtcCreateProgram": (POINTER(c_void_p), c_char_p, c_char_p, c_int, c_void_p, c_void_p),
    "nvrtcCompileProgram": (c_void_p, c_int, POINTER(c_char_p)),
    "nvrtcGetProgramLogSize": (c_void_p, POINTER(c_size_t)),
    "nvrtcGetProgramLog": (c_void_p, c_char_p),
    "nvrtcGetCUBINSize": (c_void_p, POINTER(c_size_t)),
    "nvrtcGetCUBIN": (c_void_p, c_char_p),
    "nvrtcGetPTXSize": (c_void_p, POINTER(c_size_t)),
    "nvrtcGetPTX": (c_void_p, c_char_p),
    "nvrtcDestroyProgram": (POINTER(c_void_p),),
}
_OF_THE_SYSTEM = ("libnvrtc.so.13", "libnvrtc.so.12")  # two of them do each other no harm
_WHEELS = ("nvidia.cuda_nvrtc", "nvidia.cu13")


class Compiler:
    """The compiler in the file *path*. Raises EngineError for what it refuses."""

    def __init__(self, path: str) -> None:
        self._functions = functions_of(path, _SIGNATURES)
        self._functions.nvrtcGetErrorString.restype = c_char_p

    def _call(self, function: str, *arguments: Any) -> None:
        error = getattr(self._functions, function)(*arguments)
        if error:
            raise EngineError(f"{function} failed: {self._functions.nvrtcGetErrorString(error).decode()}")

    def compile(self, source: str, defined: dict[str, int], capability: int) -> bytes:
        """Return what CUDA's driver loads, of *source* with the macros *defined*, for devices of *capability* (90 is 9.0)."""
        known = max((one for one in self._capabilities() if one <= capability), default=capability)
        kind = "CUBIN" if known == capability else "PTX"  # which the driver compiles for newer devices
        arch = f"--gpu-architecture={'sm' if kind == 'CUBIN' else 'compute'}_{known}"
        options = [arch.encode(), *(f"-D{name}={value}".encode() for name, value in defined.items())]
        program = c_void_p()
        self._call("nvrtcCreateProgram", byref(program), source.encode(), b"combine.cu", 0, None, None)
        try:
            if self._functions.nvrtcCompileProgram(program, len(options), (c_char_p * len(options))(*options)):
                log = self._text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
                raise EngineError(f"NVRTC cannot compile for compute capability {capability / 10:.1f}: {log}")
            return self._text(program, kind)
        finally:
            self._call("nvrtcDestroyProgram", byref(program))

    def check(self, capability: int) -> None:
        """Raise EngineError where this compiler does not know devices of *capability* any more."""
        oldest = min(self._capabilities())
        if capability < oldest:
            raise EngineError(
                f"this NVRTC compiles for compute capability {oldest / 10:.1f} and newer, and the device has {capability / 10:.1f}"
            )

    def _capabilities(self) -> list[int]:
        count = c_int()
        self._call("nvrtcGetNumSupportedArchs", byref(count))
        found = (c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", found)
        return list(found)

    def _text(self, program: c_void_p, kind: str) -> bytes:
        size = c_size_t()
        self._call(f"nvrtcGet{kind}Size", program, byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{kind}", program, text)
        return text.raw


@cache
def compiler() -> Compiler:
    """Return the compiler of this process. Raises EngineError where there is none."""
    for path in (*loaded("libnvrtc.so"), *of_wheels(_WHEELS, "libnvrtc.so*"), *_OF_THE_SYSTEM):
        with suppress(EngineError):
            # NVRTC 13 opens it by its name, and does not find it in a wheel's folder.
            load_beside(path, "libnvrtc-builtins.so*")
            return Compiler(path)
    raise EngineError(
        "ranks that share a device need NVRTC, and none can be loaded\n"
        "Install nvidia-cuda-nvrtc-cu12, or nvidia-cuda-nvrtc for CUDA 13."
    )


class _Areas(Structure):
    _fields_ = (("of", c_void_p * MOST_RANKS),)


class Kernels:
    """The kernels on device *number*, which is the current one. Raises EngineError where they cannot be compiled."""

    def __init__(self, cuda: Driver, number: int) -> None:
        self._cuda, self._number = cuda, number
        self._compiler = compiler()
        self._compiler.check(cuda.capability_of(number))

    def combine(
        self, target: int, sources: Sequence[int], count: int, dtype: int, op: int, stream: Any, factor: float = 1.0
    ) -> None:
        """Put on *stream* that *target* becomes what *op* makes of *count* elements of *dtype* at each of the *sources*."""
        if count == 0:
            return
        areas = _Areas((c_void_p * MOST_RANKS)(*sources))
        arguments = (c_void_p(target), areas, c_ulonglong(count), c_int(len(sources)), c_double(factor))
        places = (c_void_p * len(arguments))(*(addressof(one) for one in arguments))
        blocks = min(-(-count // _THREADS), _MOST_BLOCKS)
        function = self._function(dtype, op)
        self._cuda.call("cuLaunchKernel", function, blocks, 1, 1, _THREADS, 1, 1, 0, stream, places, None)

    def _function(self, dtype: int, op: int) -> c_void_p:
        key = (self._number, dtype, op)
        if key not in _functions:
            code = self._compiler.compile(
                _SOURCE.read_text(),
                {"DTYPE": dtype, "OP": op, "MOST_RANKS": MOST_RANKS},
                self._cuda.capability_of(self._number),
            )
            module, function = c_void_p(), c_void_p()
            self._cuda.call("cuModuleLoadData", byref(module), code)
            self._cuda.call("cuModuleGetFunction", byref(function), module, b"combine")
            _functions[key] = function
        return _functions[key]
