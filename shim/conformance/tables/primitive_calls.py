"""What the tables ask of the communication primitives of ``mindspore.ops``, called one by one, as in PyNative mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shim.conformance import oracle
from shim.conformance.kinds import TensorKind
from shim.conformance.oracle import Array
from shim.conformance.tables.cells import Call
from shim.conformance.tables.checks import Check, combined, everyone, exchange, numbers, reduce_ops_of, refusal, waited
from shim.frontends.mindspore import ops

OPS = {"SUM": "sum", "AVG": "avg", "PRODUCT": "prod", "MIN": "min", "MAX": "max"}  # the oracle's name: MindSpore's
_TAG = 5


def _all_reduce(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for op, name in OPS.items():
        result = ops.AllReduce(name)(tensors.make(numbers(rank)))
        yield Check(f"AllReduce {op}", tensors.read(result), combined(everyone(size), op))


def _broadcast(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        results = ops.Broadcast(root)((tensors.make(numbers(rank)), tensors.make(numbers(rank, (4,)))))
        yield Check(f"Broadcast from {root}", tensors.read_all(results), [numbers(root), numbers(root, (4,))])


def _all_gather(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    result = ops.AllGather()(tensors.make(numbers(rank)))
    yield Check("AllGather", tensors.read(result), oracle.joined(everyone(size)))
    given = tensors.make(numbers(rank, ()))  # whose rows are not defined; MindSpore's own ends the process
    yield refusal("AllGather", "shape ()", ops.AllGather(), given)


def _reduce(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        for op, name in OPS.items():
            result = ops.Reduce(root, name)(tensors.make(numbers(rank)))
            seen, expected = tensors.read(result), combined(everyone(size), op)
            elsewhere = np.zeros(1, expected.dtype)  # what the others get means nothing, and has this shape
            yield Check(f"Reduce {op} to {root}", seen, expected if rank == root else elsewhere)


def _reduce_scatter(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    everything = everyone(size, (2 * size, 2))
    for op, name in OPS.items():
        result = ops.ReduceScatter(name)(tensors.make(everything[rank]))
        rows = slice(2 * rank, 2 * rank + 2)
        yield Check(f"ReduceScatter {op}", tensors.read(result), combined([one[rows] for one in everything], op))


def _all_to_all(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    everything = everyone(size, (2 * size, 3))
    result = ops.AlltoAll(size, 0, 1)(tensors.make(everything[rank]))
    parts = [oracle.cut(whole, size) for whole in everything]
    yield Check("AlltoAll", tensors.read(result), np.concatenate(oracle.all_to_all(parts)[rank], axis=1))


def _all_to_all_single(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    parts, expected = exchange(rank, size, "unequal")
    counts = [[len(part) for part in exchange(one, size, "unequal")[0]] for one in range(size)]
    received = [len(part) for part in expected]
    given, whole = tensors.make(oracle.joined(parts).reshape(-1)), oracle.joined(expected).reshape(-1)
    result = ops.AlltoAllV(block_size=3)(given, counts[rank], received)
    yield Check("AlltoAllV", tensors.read(result), whole)
    result = ops.AlltoAllVC(block_size=3)(given, [count for row in counts for count in row])
    yield Check("AlltoAllVC", tensors.read(result), whole)


def _gather_and_scatter(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        result = ops.CollectiveGather(root)(tensors.make(numbers(rank)))
        if rank == root:
            yield Check(f"CollectiveGather to {root}", tensors.read(result), oracle.joined(everyone(size)))
        result = ops.CollectiveScatter(root)(tensors.make(numbers(rank, (2 * size, 3))))
        expected = numbers(root, (2 * size, 3))[2 * rank : 2 * rank + 2]
        yield Check(f"CollectiveScatter from {root}", tensors.read(result), expected)


def _send_and_receive(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    tensor = tensors.make(numbers(rank))
    if rank > 0:
        tensor = ops.Receive(_TAG, rank - 1, [2, 3], tensors.dtype())()
    if rank < size - 1:
        ops.Send(_TAG, rank + 1)(tensor)
    yield Check("Send and Receive from rank to rank", tensors.read(tensor), numbers(0))


def _batch_isend_irecv(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    batch = ops.BatchISendIRecv(("isend", "irecv"), (following, previous), [(2, 3)], (tensors.dtype(),))
    results = batch((tensors.make(numbers(rank)),))
    yield Check("what BatchISendIRecv returns", (type(results), len(results)), (tuple, 2))
    yield Check("BatchISendIRecv", tensors.read(results[1]), numbers(previous))


def _barrier(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    def all_times(time: Array) -> list[Array]:
        return list(np.split(tensors.read(ops.AllGather()(tensors.make(time))), size))

    yield waited(rank, ops.Barrier(), all_times)


def all_reduce_of_dtype(tensors: TensorKind, rank: int, size: int, dtype: str) -> Iterator[Check]:
    for op in reduce_ops_of(dtype):
        result = ops.AllReduce(OPS[op])(tensors.make(numbers(rank, dtype=dtype)))
        yield Check(f"AllReduce {op} of {dtype}", tensors.read(result), combined(everyone(size, dtype=dtype), op))
    if not reduce_ops_of(dtype):
        yield refusal("AllReduce", dtype, ops.AllReduce(), tensors.make(numbers(rank, dtype=dtype)))


def all_gather_of_dtype(tensors: TensorKind, rank: int, size: int, dtype: str) -> Iterator[Check]:
    result = ops.AllGather()(tensors.make(numbers(rank, dtype=dtype)))
    yield Check(f"AllGather of {dtype}", tensors.read(result), oracle.joined(everyone(size, dtype=dtype)))


def broadcast_of_dtype(tensors: TensorKind, rank: int, size: int, dtype: str) -> Iterator[Check]:
    results: Any = ops.Broadcast(size - 1)((tensors.make(numbers(rank, dtype=dtype)),))
    yield Check(f"Broadcast of {dtype}", tensors.read_all(results), [numbers(size - 1, dtype=dtype)])


PRIMITIVES: dict[str, Call] = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather_into_tensor": _all_gather,
    "reduce": _reduce,
    "reduce_scatter, list and tensor": _reduce_scatter,
    "all_to_all (list)": _all_to_all,
    "all_to_all_single": _all_to_all_single,
    "gather and scatter": _gather_and_scatter,
    "send and recv": _send_and_receive,
    "batch_isend_irecv": _batch_isend_irecv,
    "barrier": _barrier,
}
