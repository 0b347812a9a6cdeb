"""The device's code, compiled when it is first needed: the one kernel that combines elements."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, byref, c_double, c_int, c_ulonglong, c_void_p
from pathlib import Path
from typing import Any

from shim.core.engines.nccl.driver import Driver
from shim.core.engines.nccl.one_device.compiler import compiler

MOST_RANKS = 64
SCALED = 5  # beside NCCL's operations: one area's elements times a factor
_SOURCE = Path(__file__).with_name("combine.cu")
_THREADS, _MOST_BLOCKS = 256, 1024
_functions: dict[tuple[int, int, int], c_void_p] = {}  # of the process, by the device, the dtype and the operation


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
