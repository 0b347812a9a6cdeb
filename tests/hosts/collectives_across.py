"""Every collective of a group, with every value compared, for the program ``cases_across``."""

from __future__ import annotations

from typing import Any

import numpy as np
from known_values import KINDS, Kind, Values, expect, known

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp

ME = Caller("test")
SIZES = (8, 8 << 10, 2 << 20)  # bytes of a part: within an arrival, in one transfer, in many
_OPS = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


def all_collectives(group: ProcessGroup, sizes: tuple[int, ...] = SIZES) -> None:
    """Call each collective with each kind of tensor."""
    for kind in KINDS:
        for size in sizes:
            count = size // kind.width
            _moving(group, kind, count)
            for op in _OPS:
                if kind.name != "int64" or op in (ReduceOp.SUM, ReduceOp.MAX):
                    _reducing(group, kind, count, op)


def _moving(group: ProcessGroup, kind: Kind, count: int) -> None:
    size, rank, root = group.size, group.rank, group.size - 1
    what = f"of {count} {kind.name} in group {group.name!r}"
    mine, every = kind.made(known(rank, count)), np.concatenate([known(one, count) for one in range(size)])
    nothing, empty = kind.made(np.full(size * count, 99.0)), kind.made(np.full(count, 99.0))

    tensor = kind.made(known(rank, count))
    calls.broadcast(ME, group, tensor, root, now=True)
    expect(f"broadcast {what}", tensor, known(root, count))

    calls.all_gather(ME, group, nothing, mine).wait()
    expect(f"all_gather {what}", nothing, every)
    parts = [kind.made(np.zeros(count)) for _ in range(size)]
    calls.all_gather(ME, group, parts, mine, now=True)
    for one, part in enumerate(parts):
        expect(f"all_gather, part {one}, {what}", part, known(one, count))

    collected = kind.made(np.zeros(size * count))
    calls.gather(ME, group, collected if rank == root else None, mine, root).wait()
    expect(f"gather {what}", collected, every if rank == root else np.zeros(size * count))

    calls.scatter(ME, group, empty, kind.made(every) if rank == root else None, root).wait()
    expect(f"scatter {what}", empty, known(rank, count))

    for_all = [kind.made(known(rank, count, 1 + one)) for one in range(size)]
    calls.all_to_all(ME, group, parts, for_all).wait()
    for one, part in enumerate(parts):
        expect(f"all_to_all, part {one}, {what}", part, known(one, count, 1 + rank))
    calls.barrier(ME, group, now=True)


def _reducing(group: ProcessGroup, kind: Kind, count: int, op: ReduceOp) -> None:
    size, rank, root = group.size, group.rank, 1
    what = f"{op.name} of {count} {kind.name} in group {group.name!r}"
    mine, result = kind.made(known(rank, count)), kind.made(np.full(count, 99.0))
    combined = _combined([known(one, count) for one in range(size)], op)
    factor = rank + 1.0

    calls.all_reduce(ME, group, result, mine, op, factor).wait()
    expect(f"all_reduce {what}", result, combined)
    expect(f"input of all_reduce {what}", mine, known(rank, count))

    at_root = kind.made(np.full(count, 99.0))
    calls.reduce(ME, group, at_root, mine, op, root, factor, now=True)
    expect(f"reduce {what}", at_root, combined if rank == root else np.full(count, 99.0))

    for_all = kind.made(np.concatenate([known(rank, count, one) for one in range(size)]))
    calls.reduce_scatter(ME, group, result, for_all, op, factor).wait()
    expect(f"reduce_scatter {what}", result, _combined([known(one, count, rank) for one in range(size)], op))


def _combined(inputs: list[Values], op: ReduceOp) -> Values:
    """Return what *inputs* combine to; the factor of rank N is N + 1."""
    if op is ReduceOp.MAX:
        return np.max(inputs, axis=0)
    if op is ReduceOp.PREMUL_SUM:
        return np.sum([values * (rank + 1) for rank, values in enumerate(inputs)], axis=0)
    return np.sum(inputs, axis=0) / (len(inputs) if op is ReduceOp.AVG else 1)


def uneven_parts(group: ProcessGroup) -> None:
    """Call what takes parts of different sizes: a rank's part has as many rows as its number, in a few sizes of rows."""
    size, rank = group.size, group.rank
    for width in (1, 300, 40_000):
        rows = list(range(size))
        what = f"with parts of 0 to {size - 1} rows of {width} in group {group.name!r}"
        every = np.concatenate([known(one, one * width) for one in rows]).reshape(-1, width)
        mine = known(rank, rank * width).reshape(-1, width)

        everything = np.zeros_like(every)
        calls.all_gather(ME, group, everything, mine, rows).wait()
        expect(f"all_gather {what}", everything, every)
        at_root = np.zeros_like(every)
        calls.gather(ME, group, at_root if rank == 0 else None, mine, 0, rows).wait()
        expect(f"gather {what}", at_root, every if rank == 0 else np.zeros_like(every))
        part = np.zeros_like(mine)
        calls.scatter(ME, group, part, every if rank == 1 else None, 1, rows).wait()
        expect(f"scatter {what}", part, mine)
        calls.reduce_scatter(ME, group, part, every + rank, ReduceOp.SUM, input_splits=rows).wait()
        expect(f"reduce_scatter {what}", part, size * mine + sum(range(size)))

        sends = [(rank + one) % size for one in rows]
        to_each = np.concatenate([known(rank, rows_of * width, 3) for rows_of in sends]).reshape(-1, width)
        from_each = np.concatenate([known(one, (rank + one) % size * width, 3) for one in rows]).reshape(-1, width)
        got = np.zeros_like(from_each)
        calls.all_to_all(ME, group, got, to_each, sends, sends).wait()
        expect(f"all_to_all {what}", got, from_each)


def strided(group: ProcessGroup) -> None:
    """Call collectives with every second element of an array, between which nothing may be written."""
    size, rank = group.size, group.rank
    for count in (3, 1000, 300_000):
        what = f"of {count} elements with gaps in group {group.name!r}"
        around, result = np.full(2 * count, -1.0), np.full(2 * count, -1.0)
        around[::2] = known(rank, count)
        calls.all_reduce(ME, group, result[::2], around[::2], ReduceOp.SUM).wait()
        expect(f"all_reduce {what}", result[::2], np.sum([known(one, count) for one in range(size)], axis=0))
        calls.broadcast(ME, group, around[::2], 0, now=True)
        expect(f"broadcast {what}", around[::2], known(0, count))
        expect(f"the gaps {what}", np.concatenate([around[1::2], result[1::2]]), np.full(2 * count, -1.0))
        columns = np.zeros((count, size))
        calls.all_gather(ME, group, [columns[:, one] for one in range(size)], known(rank, count)).wait()
        expect(f"all_gather {what}", columns.T, np.stack([known(one, count) for one in range(size)]))


def in_place(group: ProcessGroup) -> None:
    """Call collectives whose input is their output, or a part of it."""
    size, rank = group.size, group.rank
    for count in (1, 1000, 1_000_001):  # of which the last goes in pieces
        what = f"of {count} elements in place in group {group.name!r}"
        every = np.stack([known(one, count) for one in range(size)])
        tensor = known(rank, count)
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
        expect(f"all_reduce {what}", tensor, every.sum(axis=0))
        stacked = np.zeros((size, count))
        stacked[rank] = every[rank]
        calls.all_gather(ME, group, stacked, stacked[rank], now=True)
        expect(f"all_gather {what}", stacked, every)
        parts = every * (rank + 1.0)
        calls.reduce_scatter(ME, group, parts[rank], parts, ReduceOp.MAX, now=True)
        expect(f"reduce_scatter {what}", parts[rank], every[rank] * float(size))


def many_at_once(group: ProcessGroup) -> None:
    """Start works of different sizes and kinds, and wait for them from the last to the first."""
    size, rank = group.size, group.rank
    begun: list[tuple[Any, str, Any, Any]] = []
    for turn in range(24):
        count = (1, 700, 200_000)[turn % 3]
        tensor = known(rank, count, turn)
        what = f"work {turn} of {count} elements in group {group.name!r}"
        if turn % 2:
            work = calls.broadcast(ME, group, tensor, turn % size)
            expected = known(turn % size, count, turn)
        else:
            work = calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM)
            expected = np.sum([known(one, count, turn) for one in range(size)], axis=0)
        work.start()
        begun.append((work, what, tensor, expected))
    for work, what, tensor, expected in reversed(begun):
        work.wait()
        expect(what, tensor, expected)
