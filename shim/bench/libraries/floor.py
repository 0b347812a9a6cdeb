"""The machine's floor as a contender: it takes its turns like the others, and moves what a collective cannot do without."""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
from typing import Any

import numpy as np

import shim
from shim.bench.cases import IN_PLACE, Case
from shim.bench.floors import ONE_COPY, TWO_COPIES, Movement, movement_of, peers_of
from shim.bench.libraries.base import Batch, CannotError, Library, Place
from shim.bench.machine import largest_cache
from shim.bench.machine_cases import LINE, MEMORY_BYTES
from shim.bench.patterns import Array

__all__ = ["OneCopy", "TwoCopies"]

_PAGE = 4096  # bytes; the first page of the segment holds the line that is handed there and back
_SLACK = 128 * 1024  # bytes behind a rank's area: a chunk may begin in it and end behind
_ALIGNMENT = 64  # bytes, of tensors
_OF_CACHE = 0.5  # of the largest cache: with outputs beyond that, stores past the cache are tried too, which empty it
_CALLS_BYTES = 1 << 20  # moved by the calls of one batch, at least
_MOST_CALLS = 1000


class _Floor(Library):
    kind: str

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.native = _load()
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[place.rank % len(processors)]})

    def versions(self) -> dict[str, str]:
        return {"shim": shim.__version__}

    def batch(self, case: Case) -> Batch:
        return _RoundTrips(self) if case.collective == LINE else _Copies(self, case)

    def map(self, size: int) -> mmap.mmap:
        """Map *size* bytes of the file all ranks share, which grows where it is shorter."""
        with open(self.place.segment, "r+b") as file:
            if os.fstat(file.fileno()).st_size < size:
                file.truncate(size)
            return mmap.mmap(file.fileno(), size)

    def close(self) -> None:
        pass


class OneCopy(_Floor):
    kind = ONE_COPY


class TwoCopies(_Floor):
    kind = TWO_COPIES


class _RoundTrips(Batch):
    def __init__(self, floor: _Floor) -> None:
        self._floor = floor
        self._line = ctypes.c_uint64.from_buffer(floor.map(_PAGE))

    def rewrite(self) -> None:
        pass

    def run(self) -> float:
        if self._floor.place.rank > 1:
            return 0.0
        rank = ctypes.c_uint64(self._floor.place.rank)
        trip = self._floor.native.shim_floor_round_trip
        return float(trip(ctypes.byref(self._line), rank, ctypes.c_uint64(_MOST_CALLS)))

    def mismatch(self) -> str | None:
        return None


class _Memory(ctypes.Structure):
    """The ``Memory`` of native/floor/floor.cpp."""

    _fields_ = (
        ("segment", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("part", "ranks", "rank", "first_peer", "peers")),
        ("source", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
    )


class _Copies(Batch):
    """A movement, by plain stores and, of large outputs, by stores past the cache; the faster of the two counts."""

    def __init__(self, floor: _Floor, case: Case) -> None:
        place, native = floor.place, floor.native
        self._movement, tensor = _movements(case, floor.kind, place.rank)
        first, peers = peers_of(case, place.rank)
        ring = int(native.shim_floor_ring_bytes())
        part = -(-(ring + tensor + _SLACK) // _PAGE) * _PAGE if floor.kind == ONE_COPY else ring
        self._mapped = floor.map(_PAGE + part * place.ranks)
        segment: Array = np.frombuffer(self._mapped, np.uint8)[_PAGE:]
        self._mine = (_PAGE + place.rank * part, part)
        private = np.empty(tensor + _ALIGNMENT if floor.kind == TWO_COPIES else 0, np.uint8)
        shared = segment[place.rank * part + ring :]
        self._tensor = (shared if floor.kind == ONE_COPY else _aligned(private))[:tensor]
        self._output = self._tensor if case.collective in IN_PLACE else _aligned(
            np.zeros(self._movement.output + _ALIGNMENT, np.uint8)
        )  # fmt: skip
        self._memory = _Memory(
            segment.ctypes.data, part, place.ranks, place.rank, first, peers, self._tensor.ctypes.data,
            self._output.ctypes.data,
        )  # fmt: skip
        self._is_beyond_cache = self._movement.output * place.ranks > largest_cache() * _OF_CACHE
        self._moved = (ctypes.c_uint64 * len(self._movement))(*self._movement)
        self._move = native.shim_floor_move
        self._calls = max(1, min(_MOST_CALLS, _CALLS_BYTES // max(1, self._movement.moved)))

    def rewrite(self) -> None:
        self._tensor.fill(2)

    def run(self) -> float:
        plain = self._timed(streaming=False)
        return min(plain, self._timed(streaming=True)) if self._is_beyond_cache else plain

    def _timed(self, *, streaming: bool) -> float:
        calls = ctypes.c_uint64(self._calls)
        seconds = self._move(ctypes.byref(self._moved), ctypes.byref(self._memory), calls, ctypes.c_int(streaming))
        return float(seconds) / self._calls

    def mismatch(self) -> str | None:
        return None

    def close(self) -> None:
        self._mapped.madvise(mmap.MADV_REMOVE, *self._mine)


def _movements(case: Case, kind: str, rank: int) -> tuple[Movement, int]:
    """Return what *rank* moves, and the bytes of each rank's tensor: those that it needs itself, or that any other reads."""
    if case.collective in MEMORY_BYTES:
        return Movement(own=case.size), case.size
    tensor = case.bytes if case.collective in IN_PLACE else 0
    for other in range(case.ranks):
        movement = movement_of(case, kind, other)
        of_each = -(-movement.shared // max(1, peers_of(case, other)[1]))
        tensor = max(tensor, movement.source, movement.direct_at + of_each)
    return movement_of(case, kind, rank), tensor


def _aligned(array: Array) -> Array:
    return array[-array.ctypes.data % _ALIGNMENT :]


def _load() -> Any:
    """Load the library that CMake builds; it is found as Python's modules are, wherever it was installed."""
    spec = importlib.util.find_spec("shim.bench._floor")
    if spec is None or spec.origin is None:
        raise CannotError("shim.bench._floor, which measures it, is not built: install shim again")
    native = ctypes.CDLL(spec.origin)
    native.shim_floor_move.restype = native.shim_floor_round_trip.restype = ctypes.c_double
    native.shim_floor_ring_bytes.restype = ctypes.c_uint64
    return native
