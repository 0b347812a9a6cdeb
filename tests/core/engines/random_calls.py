"""Random calls, the same on all ranks, each checked on every rank against the oracle; run in rank processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import shim
from shim.conformance import oracle
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Work

ME = Caller("test")
DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
          "complex64", "complex128")  # fmt: skip
COUNTS = (0, 1, 2, 3, 5, 8, 100, 4_099, 33_000, 200_003)  # within an arrival line, within a chunk, over several chunks
OPS = {"b": ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"), "f": ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "PREMUL_SUM"),
       "c": ("SUM", "AVG", "PRODUCT", "PREMUL_SUM")}  # fmt: skip
OPS["i"] = OPS["u"] = OPS["b"]


class Draw:
    """Random choices that come out the same on every rank."""

    def __init__(self, seed: int, size: int, in_shared_memory: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.size = size
        self.now = False  # whether the call is carried out at once, which is each rank's own choice
        self.in_shared_memory = in_shared_memory

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[self.random.integers(len(choices))]

    def array(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.random.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            limits = np.iinfo(dtype)
            return self.random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        values = self.random.standard_normal(shape)
        special = self.random.random(shape)
        values = np.where(special < 0.01, np.nan, np.where(special > 0.99, np.inf, values))
        return (values + 1j * self.random.standard_normal(shape) if kind == "c" else values).astype(dtype)

    def arrays(self, count: int, dtype: str) -> list[np.ndarray]:
        return [self.array((count,), dtype) for _ in range(self.size)]

    def matrix(self, count: int, dtype: str) -> list[list[np.ndarray]]:
        """Draw parts for every pair of ranks, of different sizes, some of them empty."""
        sizes = self.random.integers(0, count + 1, (self.size, self.size))
        return [[self.array((sizes[i, j],), dtype) for j in range(self.size)] for i in range(self.size)]

    def reduction(self, dtype: str) -> tuple[ReduceOp, list[float] | None]:
        op = ReduceOp[self.one(OPS[np.dtype(dtype).kind])]
        return op, [float(f) for f in self.random.standard_normal(self.size)] if op is ReduceOp.PREMUL_SUM else None


def placed(draw: Draw, array: np.ndarray) -> np.ndarray:
    """Return a copy of a one-dimensional array that lies in shared memory, or somewhere awkward: strided, backwards or unaligned."""
    if draw.in_shared_memory:
        copy = shim.empty(array.size + 3, array.dtype)[3:]
        copy[:] = array
        return copy
    way = draw.one(("plain", "plain", "strided", "backwards", "unaligned"))
    if way == "strided":
        wide = np.zeros(array.size * 3, array.dtype)
        wide[::3] = array
        return wide[::3]
    if way == "backwards":
        return array[::-1].copy()[::-1]
    if way == "unaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
        raw[:] = np.frombuffer(array.tobytes(), np.uint8)
        return raw.view(array.dtype)
    return array.copy()


def blank(draw: Draw, array: np.ndarray) -> np.ndarray:
    return placed(draw, np.ones_like(array))


def assert_same_bits(what: str, seen: np.ndarray, expected: np.ndarray) -> None:
    """Compare bit by bit, but take any NaN for any other: their payloads depend on the processor."""
    if seen.dtype != expected.dtype or seen.shape != expected.shape:
        raise AssertionError(f"{what}: {seen.dtype} {seen.shape} where {expected.dtype} {expected.shape} was expected")
    same = (seen == expected) | ((seen != seen) & (expected != expected))
    if not same.all():
        at = np.flatnonzero(~same)[0]
        raise AssertionError(f"{what}: {seen[at]} where {expected[at]} was expected, at {at} of {seen.size}")


Step = Callable[[Draw, ProcessGroup, str, int], tuple[Work, list[np.ndarray], list[np.ndarray]]]


def broadcast(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    inputs, root = draw.arrays(count, dtype), int(draw.random.integers(draw.size))
    mine = [placed(draw, x) for x in inputs][group.rank]
    return calls.broadcast(ME, group, mine, root, now=draw.now), [mine], [oracle.broadcast(inputs, root)[group.rank]]


def all_reduce(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    inputs, (op, factors) = draw.arrays(count, dtype), draw.reduction(dtype)
    expected = oracle.all_reduce(inputs, op.name, factors)[group.rank]
    mine = [placed(draw, x) for x in inputs][group.rank]
    out = mine if draw.one((True, False)) else blank(draw, mine)
    factor = factors[group.rank] if factors else 1.0
    return calls.all_reduce(ME, group, out, mine, op, factor, now=draw.now), [out], [expected]


def reduce(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    inputs, (op, factors), root = draw.arrays(count, dtype), draw.reduction(dtype), int(draw.random.integers(draw.size))
    expected = oracle.reduce(inputs, op.name, root, factors)[group.rank]
    mine = [placed(draw, x) for x in inputs][group.rank]
    factor = factors[group.rank] if factors else 1.0
    work = calls.reduce(ME, group, mine, mine, op, root, factor, now=draw.now)
    return work, [mine], [inputs[group.rank] if expected is None else expected]


def all_gather(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    counts = [int(draw.random.integers(count + 1)) for _ in range(draw.size)]
    inputs = [draw.array((c,), dtype) for c in counts]
    expected = oracle.all_gather(inputs)[group.rank]
    mine = [placed(draw, x) for x in inputs][group.rank]
    if draw.one((True, False)):
        outs = [blank(draw, x) for x in expected]
        return calls.all_gather(ME, group, outs, mine, now=draw.now), outs, expected
    out = blank(draw, oracle.joined(expected))
    return calls.all_gather(ME, group, out, mine, counts, now=draw.now), [out], [oracle.joined(expected)]


def gather(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    counts, root = (
        [int(draw.random.integers(count + 1)) for _ in range(draw.size)],
        int(draw.random.integers(draw.size)),
    )
    inputs = [draw.array((c,), dtype) for c in counts]
    expected = oracle.gather(inputs, root)[group.rank]
    mine = [placed(draw, x) for x in inputs][group.rank]
    outs = None if expected is None else [np.ones_like(x) for x in expected]
    return calls.gather(ME, group, outs, mine, root, now=draw.now), outs or [], expected or []


def scatter(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    matrix, root = draw.matrix(count, dtype), int(draw.random.integers(draw.size))
    expected = oracle.scatter(matrix, root)[group.rank]
    out = np.ones_like(expected)
    inputs = [placed(draw, x) for x in matrix[root]]
    return calls.scatter(ME, group, out, inputs if group.rank == root else None, root, now=draw.now), [out], [expected]


def reduce_scatter(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    counts = [int(draw.random.integers(count + 1)) for _ in range(draw.size)]
    inputs = [[draw.array((c,), dtype) for c in counts] for _ in range(draw.size)]
    op, factors = draw.reduction(dtype)
    expected = oracle.reduce_scatter(inputs, op.name, factors)[group.rank]
    out, factor = np.ones_like(expected), factors[group.rank] if factors else 1.0
    if draw.one((True, False)):
        return calls.reduce_scatter(ME, group, out, inputs[group.rank], op, factor, now=draw.now), [out], [expected]
    mine = [placed(draw, oracle.joined(parts)) for parts in inputs][group.rank]
    return calls.reduce_scatter(ME, group, out, mine, op, factor, counts, now=draw.now), [out], [expected]


def all_to_all(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    matrix = draw.matrix(count, dtype)
    expected = oracle.all_to_all(matrix)[group.rank]
    if draw.one((True, False)):
        outs = [np.ones_like(x) for x in expected]
        return calls.all_to_all(ME, group, outs, matrix[group.rank], now=draw.now), outs, expected
    out = blank(draw, np.zeros(sum(x.size for x in oracle.all_to_all(matrix)[group.rank]), dtype))
    mine = oracle.joined(matrix[group.rank])
    splits = [[x.size for x in parts] for parts in (expected, matrix[group.rank])]
    return calls.all_to_all(ME, group, out, mine, *splits, now=draw.now), [out], [oracle.joined(expected)]


def barrier(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    return calls.barrier(ME, group, now=draw.now), [], []


def transfer(draw: Draw, group: ProcessGroup, dtype: str, count: int) -> tuple[Work, list[Any], list[Any]]:
    """Every rank sends to the next and receives from the one before, two messages whose tags come in the other order."""
    inputs, size = [draw.arrays(count, dtype), draw.arrays(count // 2, dtype)], draw.size
    after, before = (group.rank + 1) % size, (group.rank - 1) % size
    outs = [np.ones_like(x[before]) for x in inputs]
    sends = [calls.send(ME, group, placed(draw, inputs[i][group.rank]), after, tag=i) for i in (0, 1)]
    for send in sends:
        send.start()
    calls.receive(ME, group, outs[1], before, tag=1).wait()
    last = calls.receive(ME, group, outs[0], None if size < 3 else before, tag=0)
    last.wait()
    for send in sends:
        send.wait()
    return calls.barrier(ME, group, now=draw.now), outs, [inputs[0][before], inputs[1][before]]


STEPS: tuple[Step, ...] = (broadcast, all_reduce, reduce, all_gather, gather, scatter, reduce_scatter, all_to_all, barrier, transfer)  # fmt: skip


def run(seed: int, steps: int, in_shared_memory: bool = False) -> int:
    """Make *steps* random calls in the world and two subgroups, some of them in the background; return how many."""
    world = groups.enter_world(ME, "test", timeout=30.0)
    try:
        chosen = [world, groups.new_group(ME), groups.new_group(ME, list(range(0, world.size, 2)))]
        pending: list[tuple[str, Work, list[Any], list[Any]]] = []
        made = 0
        for step in range(steps):
            shared = np.random.default_rng([seed, step])
            group = chosen[shared.integers(len(chosen))]
            if group.rank < 0:
                continue
            draw = Draw(int(shared.integers(1 << 30)), group.size, in_shared_memory)
            dtype, count, call = draw.one(DTYPES), draw.one(COUNTS), draw.one(STEPS)
            draw_alone = draw.one((True, False))  # whether this rank's own choice decides to wait
            starts = draw_alone and (os.getpid() + step) % 2
            draw.now = not starts and step % 3 > 0
            work, seen, expected = call(draw, group, dtype, count)
            what = f"seed {seed} step {step}: {call.__name__} of {count} {dtype} on rank {group.rank} of {group.size}"
            made += 1
            if starts:
                work.start()
                pending.append((what, work, seen, expected))
                continue
            work.wait()
            for one, other in zip(seen, expected, strict=True):
                assert_same_bits(what, one, other)
            if len(pending) > 4 or step == steps - 1:
                settle(pending)
        settle(pending)
        return made
    finally:
        groups.close_group(world)


def settle(pending: list[tuple[str, Work, list[Any], list[Any]]]) -> None:
    for what, work, seen, expected in pending:
        work.wait()
        for one, other in zip(seen, expected, strict=True):
            assert_same_bits(what, one, other)
    pending.clear()


def count_up(times: int) -> None:
    """Sum and gather the step's number many times over, with nothing between the calls."""
    world = groups.enter_world(ME, "test", timeout=30.0)
    try:
        tensor, gathered = np.zeros(1), np.zeros(world.size)
        for step in range(times):
            tensor[0] = step + world.rank
            calls.all_gather(ME, world, gathered, tensor, now=step % 2 == 0).wait()
            assert gathered.tolist() == [step + rank for rank in range(world.size)]
            calls.all_reduce(ME, world, tensor, tensor, ReduceOp.MAX, now=step % 3 == 0).wait()
            assert tensor[0] == step + world.size - 1
    finally:
        groups.close_group(world)
