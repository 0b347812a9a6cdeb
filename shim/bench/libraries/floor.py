"""The machine's floor as a contender: it takes its turns like the others, and moves what a collective cannot do without."""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
from typing import Any

import numpy as np

import shim
from shim.bench.cases import DTYPES, IN_PLACE, LINE, MEMORY_BYTES, Case
from shim.bench.floors import ONE_COPY, TWO_COPIES, Movement, movement_of, peers_of
from shim.bench.libraries.base import Batch, CannotError, Library, Place
from shim.bench.libraries.patterns import Array
from shim.bench.machine import bind_to_processor

_PAGE = 4096  # bytes; the first page of the segment holds the line that is handed there and back
_SLACK = 128 * 1024  # bytes behind a rank's area: a chunk may begin in it and end behind
_ALIGNMENT = 64  # bytes, of tensors
_STREAMED_BYTES = 1 << 20  # of all ranks' outputs, from which stores past the cache are tried too
_CALLS_BYTES = 1 << 20  # moved by one batch of the rank that moves most, at least
_MOST_CALLS = 1000


class _Floor(Library):
    kind: str

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.native = _load()
        bind_to_processor(place.rank)

    def versions(self) -> dict[str, str]:
        return {"shim": shim.__version__}

    def batch(self, case: Case, calls: int) -> Batch:
        """Make ready for as many calls as can be told from the clock: nobody waits between them."""
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

    def run(self, way: int = 0) -> float:
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
        ("pushed_to", ctypes.c_uint64),
    )


class _Copies(Batch):
    """A movement: by plain stores, and in another way, of outputs that are not small, by stores past the cache."""

    def __init__(self, floor: _Floor, case: Case) -> None:
        place = floor.place
        movements, tensor, output = _movements(case, floor.kind)
        self._movement = movements[place.rank]
        self._tensor, self._output = self._tensors(floor, case, tensor, output)
        self._moved = (ctypes.c_uint64 * len(self._movement))(*self._movement)
        self._move = floor.native.shim_floor_move
        self._calls = max(1, min(_MOST_CALLS, _CALLS_BYTES // max(1, *(one.moved for one in movements))))
        self.ways = 2 if sum(one.output for one in movements) >= _STREAMED_BYTES else 1

    def _tensors(self, floor: _Floor, case: Case, tensor: int, output: int) -> tuple[Array, Array]:
        """Make this rank's tensor and its output, where the movement's kind has them: in the segment all ranks share, or privately."""
        place, ring = floor.place, int(floor.native.shim_floor_ring_bytes())
        in_place, one_copy = case.collective in IN_PLACE, floor.kind == ONE_COPY
        is_pushed_to = (
            one_copy and case.collective == "send_receive"
        )  # else its own memory, which may have larger pages
        first, peers = peers_of(case, place.rank)
        pushed_to = 0 if in_place else -(-tensor // _ALIGNMENT) * _ALIGNMENT
        area_bytes = (pushed_to + output if is_pushed_to else tensor) + _SLACK if one_copy else 0
        part = -(-(ring + area_bytes) // _PAGE) * _PAGE
        self._mapped = floor.map(_PAGE + part * place.ranks)
        segment: Array = np.frombuffer(self._mapped, np.uint8)[_PAGE:]
        self._mine = (_PAGE + place.rank * part, part)
        area = segment[place.rank * part + ring : (place.rank + 1) * part]
        source = area[:tensor] if one_copy else _private(tensor)
        written = source if in_place else area[pushed_to : pushed_to + output] if is_pushed_to else _private(output)
        self._memory = _Memory(
            segment.ctypes.data,
            part,
            place.ranks,
            place.rank,
            first,
            peers,
            source.ctypes.data,
            written.ctypes.data,
            pushed_to,
        )
        written.fill(0)  # so that no page of it is new to the first call
        return source, written

    def rewrite(self) -> None:
        self._tensor.fill(2)

    def run(self, way: int = 0) -> float:
        calls = ctypes.c_uint64(self._calls)
        seconds = self._move(ctypes.byref(self._moved), ctypes.byref(self._memory), calls, ctypes.c_int(way))
        return float(seconds) / self._calls

    def mismatch(self) -> str | None:
        return None

    def close(self) -> None:
        self._mapped.madvise(mmap.MADV_REMOVE, *self._mine)


def _movements(case: Case, kind: str) -> tuple[list[Movement], int, int]:
    """Return what each rank moves, the bytes of its tensor, which it needs itself or any other reads, and those of its output."""
    if case.collective in MEMORY_BYTES:
        return [Movement(own=case.size)] * case.ranks, case.size, case.size
    movements = [movement_of(case, kind, rank) for rank in range(case.ranks)]
    tensor = case.bytes if case.collective in IN_PLACE else 0
    for rank, movement in enumerate(movements):
        peers = max(1, peers_of(case, rank)[1])
        read, pushed = -(-movement.shared // peers), -(-movement.push // peers)
        tensor = max(tensor, movement.source, movement.direct_at + read, movement.push_at + pushed)
    output = max(case.output_count(rank) * DTYPES[case.dtype] for rank in range(case.ranks))
    return movements, tensor, max(output, *(one.output - one.push for one in movements))


def _private(size: int) -> Array:
    return _aligned(np.empty(size + _SLACK + _ALIGNMENT, np.uint8))[:size]


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
