"""What a link by MPI must do, as functions that every rank calls at the same time; ``CASES`` has them all.

Each rank and each position has bytes or elements of its own, so that nothing can be swapped unseen.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from unittest import mock

import numpy as np

from shim.core.engines.mpi import communicators, link
from shim.core.engines.mpi.library import library
from shim.core.engines.mpi.link import MpiLink
from shim.core.engines.network.link import HEADER_BYTES, Pending
from shim.core.reduce_ops import ReduceOp

DEADLINE = 20.0  # seconds

WORLD = library().mpi.COMM_WORLD
_numbers = iter(range(1 << 30))


def exchanger(members: Sequence[int], number: int) -> Callable[[bytes], list[bytes]]:
    """Return what gives bytes to all *members* by messages of MPI."""

    def exchange(mine: bytes) -> list[bytes]:
        sent = [WORLD.isend(mine, member, 100 + number) for member in members]
        theirs = [WORLD.recv(None, member, 100 + number) for member in members]
        for request in sent:
            request.wait()
        return theirs

    return exchange


def opened(members: Sequence[int] | None = None, number: int | None = None) -> MpiLink:
    """Return a new link between *members*, with *number*, or all ranks."""
    members = range(WORLD.size) if members is None else members
    number = next(_numbers) if number is None else number
    with mock.patch.object(communicators.secrets, "randbits", return_value=number):
        return MpiLink(tuple(members), WORLD.rank, WORLD.size, exchanger(members, number))


def done(pending: Pending) -> None:
    assert pending.wait(DEADLINE)
    assert pending.wait(0)  # and stays so


def memory(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))


def bytes_of(rank: int, count: int) -> np.ndarray:
    return (np.arange(count) * 7 + rank * 31 + 1).astype(np.uint8)


def all_gather() -> None:
    world = opened()
    for count in (0, 1, 8, 1000, 300_000):
        outputs = np.zeros((world.size, count), np.uint8)
        done(world.all_gather(memory(outputs), memory(bytes_of(world.rank, count))))
        assert np.array_equal(outputs, [bytes_of(rank, count) for rank in range(world.size)])
    world.close(True)


def all_gather_in_place() -> None:
    world = opened()
    outputs = np.zeros((world.size, 9), np.uint8)
    outputs[world.rank] = bytes_of(world.rank, 9)
    done(world.all_gather(memory(outputs), memory(outputs[world.rank])))
    assert np.array_equal(outputs, [bytes_of(rank, 9) for rank in range(world.size)])
    world.close(True)


def all_gather_of_read_only_bytes() -> None:
    world = opened()
    outputs = bytearray(2 * world.size)
    done(world.all_gather(memoryview(outputs), memoryview(bytes([world.rank, 77]))))
    assert list(outputs) == [value for rank in range(world.size) for value in (rank, 77)]
    world.close(True)


def broadcast() -> None:
    world = opened()
    for root in range(world.size):
        for count in (0, 1, 5000, 300_000):
            data = bytes_of(world.rank, count)
            done(world.broadcast(memory(data), root))
            assert np.array_equal(data, bytes_of(root, count))
    world.close(True)


def all_to_all() -> None:
    world = opened()
    size, mine = world.size, world.rank

    def part(source: int, target: int) -> np.ndarray:
        return bytes_of(source * size + target, (source * 3 + target * 50_000) % 120_001 if source != target else 3)

    for _ in range(2):
        inputs = [memory(part(mine, target)) for target in range(size)]
        outputs = [np.zeros_like(part(source, mine)) for source in range(size)]
        done(world.all_to_all([memory(each) for each in outputs], inputs))
        for source in range(size):
            assert np.array_equal(outputs[source], part(source, mine))
    world.close(True)


def all_to_all_of_nothing() -> None:
    world = opened()
    nothing = [memoryview(b"")] * world.size
    done(world.all_to_all([memoryview(bytearray()) for _ in nothing], nothing))
    world.close(True)


_INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
_NUMPY_OPS = {
    ReduceOp.SUM: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}


def _numbers_of(rank: int, count: int, dtype: str) -> np.ndarray:
    """Numbers whose sums and products floats hold exactly, and which overflow small integers."""
    numbers = (np.arange(count) * 5 + rank * 3) % 11 + 1
    if dtype == "bool":
        return (np.arange(count) >> rank) % 2 == 0
    if dtype.startswith("complex"):
        return (numbers + 1j * (numbers % 3)).astype(dtype)
    return (numbers * (29 if dtype.endswith("int8") else 1)).astype(dtype)


def _combined(size: int, count: int, dtype: str, op: ReduceOp) -> np.ndarray:
    every = [_numbers_of(rank, count, dtype) for rank in range(size)]
    if dtype == "bool":
        op = {ReduceOp.SUM: ReduceOp.BOR, ReduceOp.PRODUCT: ReduceOp.BAND}.get(op, op)
    return _NUMPY_OPS[op].reduce(every, axis=0, dtype=dtype if op in (ReduceOp.SUM, ReduceOp.PRODUCT) else None)


def _reductions(world: MpiLink) -> list[tuple[str, ReduceOp]]:
    dtypes = ("bool", *_INTEGERS, "float16", "float32", "float64", "complex64", "complex128")
    return [(dtype, op) for dtype in dtypes for op in ReduceOp if world.reduces(dtype, op)]


def all_reduce() -> None:
    world = opened()
    for dtype, op in _reductions(world):
        for count in (0, 1, 37, 20_000):
            data = _numbers_of(world.rank, count, dtype)
            done(world.all_reduce(memory(data), dtype, op))
            assert np.array_equal(data, _combined(world.size, count, dtype, op)), (dtype, op, count)
    world.close(True)


def refused_reductions() -> None:
    """What MPI does wrong, or what it lacks, is not said to be done."""
    world = opened()
    refused = [("float32", op) for op in (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.AVG, ReduceOp.PREMUL_SUM, ReduceOp.BOR)]
    refused += [("float8_e5m2", ReduceOp.SUM), ("complex32", ReduceOp.SUM), ("complex64", ReduceOp.MAX)]
    for dtype, op in refused:
        assert not world.reduces(dtype, op), (dtype, op)
    for dtype in ("float16", "bfloat16"):
        assert not world.reduces(dtype, ReduceOp.SUM) or world.size <= 2
    assert all(world.reduces(dtype, op) for dtype in ("int32", "uint32", "int64", "uint64") for op in _NUMPY_OPS)
    assert world.reduces("int8", ReduceOp.MIN)
    assert world.reduces("float32", ReduceOp.SUM)
    assert world.reduces("float64", ReduceOp.PRODUCT)
    world.close(True)


def sums_of_two_bfloat16() -> None:
    pair = (0, 1)
    if WORLD.rank not in pair:
        return
    both = opened(pair, 1002)
    if both.reduces("bfloat16", ReduceOp.SUM):
        values = np.array([1.0 + 2**-7, 256.0, np.inf] if WORLD.rank else [1.0, 1.0, 1.0], np.float32)
        data = (values.view(np.uint32) >> 16).astype(np.uint16)
        done(both.all_reduce(memory(data), "bfloat16", ReduceOp.SUM))
        sums = (data.astype(np.uint32) << 16).view(np.float32)
        assert list(sums) == [2.0, 256.0, np.inf]  # the first two are halfway, and go to the even one
    both.close(True)


def pieces_of_what_is_too_large() -> None:
    """The limit of MPI's counts is put down, as memory is short."""
    limit, link.MOST_AT_ONCE = link.MOST_AT_ONCE, 1000
    try:
        for case in (all_gather, broadcast, all_to_all, all_reduce, messages):
            case()
    finally:
        link.MOST_AT_ONCE = limit


def messages() -> None:
    """Each rank sends each other one several messages at a time; the numbers tell which is which."""
    world = opened()
    others = [rank for rank in range(world.size) if rank != world.rank]
    lengths = {0: 0, 1: 8, 2: 300_000, 1 << 20: 2500}
    arriving = {(peer, number): np.zeros(count, np.uint8) for peer in others for number, count in lengths.items()}
    receives = [world.receive(memory(data), peer, number) for (peer, number), data in reversed(arriving.items())]
    sends = [
        world.send(memory(bytes_of(world.rank * 10 + peer + number, count)), peer, number)
        for number, count in lengths.items()
        for peer in others
    ]
    for pending in [*receives, *sends]:
        done(pending)
    for (peer, number), data in arriving.items():
        assert np.array_equal(data, bytes_of(peer * 10 + world.rank + number, lengths[number]))
    world.close(True)


def messages_during_a_collective() -> None:
    world = opened()
    peer, source = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    received = np.zeros(200_000, np.uint8)
    sent = [world.receive(memory(received), source, 3), world.send(memory(bytes_of(world.rank, 200_000)), peer, 3)]
    data = np.array([world.rank + 1], np.int64)
    done(world.all_reduce(memory(data), "int64", ReduceOp.SUM))
    for pending in sent:
        done(pending)
    assert data[0] == world.size * (world.size + 1) // 2
    assert np.array_equal(received, bytes_of(source, 200_000))
    world.close(True)


def _take(world: MpiLink, count: int) -> list[tuple[int, bytes]]:
    taken: list[tuple[int, bytes]] = []
    world.take_headers(lambda source, header: taken.append((source, header)))
    until = time.monotonic() + DEADLINE
    while len(taken) < count and time.monotonic() < until:
        world.progress()
    return taken


def headers() -> None:
    """They come in order from each rank, and none is lost that came before they were asked for or that nobody waits for."""
    world = opened()
    others = [rank for rank in range(world.size) if rank != world.rank]
    for number in range(5):
        for peer in others:
            world.send_header(bytes([world.rank, number]) * (HEADER_BYTES // 2), peer)
            gc.collect()
    taken = _take(world, 5 * len(others))
    for peer in others:
        expected = [bytes([peer, number]) * (HEADER_BYTES // 2) for number in range(5)]
        assert [header for source, header in taken if source == peer] == expected
    WORLD.Barrier()
    world.progress()
    assert len(taken) == 5 * len(others)
    world.close(True)


def a_wait_ends() -> None:
    """One that is for nothing takes its time, not more, and does not use the processor for long."""
    world = opened()
    peer = (world.rank + 1) % world.size
    data = np.zeros(4, np.uint8)
    pending = world.receive(memory(data), (world.rank - 1) % world.size, 1)
    assert not pending.wait(0)
    began, used = time.monotonic(), time.process_time()
    assert not pending.wait(0.5)
    assert 0.5 <= time.monotonic() - began < 5
    assert time.process_time() - used < 0.25
    WORLD.Barrier()
    done(world.send(memory(bytes_of(world.rank, 4)), peer, 1))
    done(pending)
    world.close(True)


CASES = {
    case.__name__: case
    for case in (
        all_gather,
        all_gather_in_place,
        all_gather_of_read_only_bytes,
        broadcast,
        all_to_all,
        all_to_all_of_nothing,
        all_reduce,
        refused_reductions,
        sums_of_two_bfloat16,
        pieces_of_what_is_too_large,
        messages,
        messages_during_a_collective,
        headers,
        a_wait_ends,
    )
}
