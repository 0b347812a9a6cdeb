"""What the table of dtypes asks of ``torch.distributed`` and of ``paddle.distributed``, which differ in names alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from shim.conformance.assertions import assert_returned
from shim.conformance.oracle import Array
from shim.conformance.tables.checks import Check, reduce_ops_of, refusal
from shim.conformance.tables.elements import Tensors, combined, everyone, numbers


def every_way(
    dist: Any,
    ops: Mapping[str, Any],
    all_to_all_single: Callable[..., object],
    tensors: Tensors,
    rank: int,
    size: int,
    dtype: str,
    lists_are_filled: bool,
) -> Iterator[Check]:
    """Reduce and move tensors of *dtype* with *dist*, whose reduce ops are *ops* by the oracle's name.

    Where *lists_are_filled*, gathers put tensors into an empty list; else they write to those in it.
    """
    everything, mine = everyone(size, (size, 2), dtype), numbers(rank, (size, 2), dtype)
    for op in reduce_ops_of(dtype):
        tensor = tensors.make(mine)
        dist.all_reduce(tensor, ops[op])
        yield Check(f"all_reduce {op} of {dtype}", tensors.read(tensor), combined(everything, op))
        output = tensors.blank((2,), dtype)
        dist.reduce_scatter(output, tensors.make_all(mine), ops[op])
        expected = combined([whole[rank] for whole in everything], op)
        yield Check(f"reduce_scatter {op} of {dtype}", tensors.read(output), expected)
    if not reduce_ops_of(dtype):
        yield refusal("all_reduce", dtype, dist.all_reduce, tensors.make(mine))
        parts = tensors.make_all(mine)
        yield refusal("reduce_scatter", dtype, dist.reduce_scatter, tensors.blank((2,), dtype), parts)
    tensor = tensors.blank((size, 2), dtype)
    all_to_all_single(tensor, tensors.make(mine))
    exchanged = np.stack([whole[rank] for whole in everything])
    yield Check(f"all_to_all_single of {dtype}", tensors.read(tensor), exchanged)
    yield from _moves(dist, tensors, rank, everything, dtype, 0 if lists_are_filled else size)


def _moves(dist: Any, tensors: Tensors, rank: int, everything: list[Array], dtype: str, listed: int) -> Iterator[Check]:
    size, shape, mine = len(everything), everything[0].shape, everything[rank]
    tensor = tensors.make(mine)
    dist.broadcast(tensor, size - 1)
    yield Check(f"broadcast of {dtype}", tensors.read(tensor), everything[-1])
    outputs = [tensors.blank(shape, dtype) for _ in range(listed)]
    dist.all_gather(outputs, tensors.make(mine))
    yield Check(f"all_gather of {dtype}", tensors.read_all(outputs), everything)
    found = [tensors.blank(shape, dtype) for _ in range(listed)] if rank == 0 else None
    dist.gather(tensors.make(mine), found, 0)
    if found is not None:
        yield Check(f"gather of {dtype}", tensors.read_all(found), everything)
    tensor = tensors.blank(shape, dtype)
    dist.scatter(tensor, tensors.make_all(everything) if rank == 0 else None, 0)
    yield Check(f"scatter of {dtype}", tensors.read(tensor), mine)
    work = dist.isend(tensors.make(mine), (rank + 1) % size)
    dist.recv(tensor, (rank - 1) % size)
    assert_returned(work).wait()
    yield Check(f"isend and recv of {dtype}", tensors.read(tensor), everything[rank - 1])
