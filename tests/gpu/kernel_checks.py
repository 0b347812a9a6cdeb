"""The kernel of ranks that share a device, for each dtype and operation, bit by bit against numpy."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_size_t, c_void_p
from typing import Any

import numpy as np
from findings import Findings

from shim.core.engines.nccl import driver, kernels
from shim.core.engines.nccl.library import DTYPES

COUNT = 256 * 1024 * 2 + 77  # more elements than threads that are launched, and no multiple of them
_OPERATIONS = ("sum", "product", "maximum", "minimum", "average", "scaled")  # by NCCL's numbers, and one of ours
_RANKS = 3
_FACTOR = 3.0
_SIGNED_BITS = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}


def check_kernels(findings: Findings) -> None:
    """Compile and run all kernels on device 0."""
    cuda, copies = driver.driver(), ctypes.CDLL(driver.loaded("libcuda.so")[0])
    with cuda.on(0):
        made = kernels.Kernels(cuda, 0)
        findings.found["compiler"] = kernels.loaded("libnvrtc.so")
        findings.found["elements"] = COUNT
        areas = [c_void_p() for _ in range(_RANKS + 1)]
        for area in areas:
            cuda.call("cuMemAlloc_v2", byref(area), COUNT * 8)
        *sources, target = areas
        compiling, running = [], []
        for dtype, number in DTYPES.items():
            inputs = [_elements(dtype, rank) for rank in range(_RANKS)]
            for source, array in zip(sources, inputs, strict=True):
                _write(copies, source, array)
            for op, name in enumerate(_OPERATIONS):
                with findings.case(f"{dtype} {name}"):
                    took = []
                    for _ in range(2):  # the first time with the compiler
                        began = time.perf_counter()
                        places = [source.value or 0 for source in sources]
                        made.combine(target.value or 0, places, COUNT, number, op, None, _FACTOR)
                        cuda.call("cuCtxSynchronize")
                        took.append(time.perf_counter() - began)
                    compiling.append(took[0] - took[1])
                    running.append(took[1])
                    _assert_same(_read(copies, target, inputs[0]), expected(dtype, op, inputs), dtype)
        for area in areas:
            cuda.call("cuMemFree_v2", area)
    findings.figures = {
        "kernels": len(running),
        "milliseconds to compile": _spread(compiling),
        "milliseconds to run": _spread(running),
    }
    findings.keep()


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    return {name: round(1e3 * float(of(seconds)), 3) for name, of in (("median", np.median), ("most", max)) if seconds}


def _elements(dtype: str, rank: int) -> Any:
    """Return a rank's elements; those of bfloat16 as integers of their bits."""
    random = np.random.default_rng(rank)
    if dtype not in _SIGNED_BITS:
        return np.frombuffer(random.bytes(COUNT * np.dtype(dtype).itemsize), dtype).copy()
    if dtype in ("float16", "bfloat16"):  # all there are, in an order of their own
        return np.resize(random.permutation(1 << 16).astype("uint16"), COUNT).view(
            "uint16" if dtype == "bfloat16" else dtype
        )
    values = random.standard_normal(COUNT).astype(dtype)
    values[::7] = np.resize(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 1e38], dtype), values[::7].shape)
    return np.roll(values, 3 * rank)


def expected(dtype: str, op: int, inputs: Sequence[Any]) -> Any:
    """Return what *op* makes of *inputs*, in their order; short floats are widened, and rounded once."""
    with np.errstate(all="ignore"):
        wide = [_widened(dtype, array) for array in inputs]
        value = wide[0].copy()
        for other in wide[1:]:
            value = (np.multiply if op == 1 else np.maximum if op == 2 else np.minimum if op == 3 else np.add)(
                value, other
            )
        if op == 4:
            value = value / value.dtype.type(_RANKS) if dtype in _SIGNED_BITS else _towards_zero(value)
        if op == 5:
            value = value * value.dtype.type(_FACTOR)
        return _narrowed(dtype, value)


def _towards_zero(value: Any) -> Any:
    """Divide integers by the number of ranks as C does."""
    ranks = value.dtype.type(_RANKS)
    quotient = value // ranks
    return quotient + ((value < 0) & (quotient * ranks != value)).astype(value.dtype)


def _widened(dtype: str, array: Any) -> Any:
    if dtype == "bfloat16":
        return (array.astype("uint32") << 16).view("float32")
    return array.astype("float32") if dtype == "float16" else array


def _narrowed(dtype: str, value: Any) -> Any:
    """Round to the nearest, ties to even."""
    if dtype != "bfloat16":
        return value.astype(dtype)
    bits = value.view("uint32")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(value), 0x7FC0, rounded).astype("uint16")


def _assert_same(seen: Any, wanted: Any, dtype: str) -> None:
    """Raise AssertionError unless both have the same values; any NaN is as good as another one."""
    seen, wanted = (_widened(dtype, array) if dtype == "bfloat16" else array for array in (seen, wanted))
    is_same = seen == wanted
    if dtype in _SIGNED_BITS:
        is_same |= np.isnan(seen) & np.isnan(wanted)
    wrong = np.flatnonzero(~is_same)
    examples = [(int(at), seen[at], wanted[at]) for at in wrong[:4]]
    assert not wrong.size, f"{wrong.size} of {len(seen)} elements differ: (place, seen, expected) {examples}"


def _write(copies: Any, at: c_void_p, array: Any) -> None:
    source = c_char_p(array.tobytes())
    assert copies.cuMemcpyHtoDAsync_v2(at, source, c_size_t(array.nbytes), None) == 0
    assert copies.cuCtxSynchronize() == 0


def _read(copies: Any, at: c_void_p, like: Any) -> Any:
    array = np.empty_like(like)
    assert copies.cuMemcpyDtoHAsync_v2(array.ctypes.data_as(c_void_p), at, c_size_t(array.nbytes), None) == 0
    assert copies.cuCtxSynchronize() == 0
    return array
