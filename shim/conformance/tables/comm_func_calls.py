"""What the tables ask of ``mindspore.communication.comm_func``, whose functions return their results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_returned
from shim.conformance.kinds import TensorKind
from shim.conformance.oracle import Array
from shim.conformance.tables.cells import Call
from shim.conformance.tables.checks import Check, combined, everyone, exchange, numbers, refusal, waited
from shim.conformance.tables.primitive_calls import OPS
from shim.frontends.mindspore import communication
from shim.frontends.mindspore.communication import comm_func

_OPS = {op: name for op, name in OPS.items() if op != "AVG"}


def _all_reduce(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    given = tensors.make(numbers(rank))
    for op, name in _OPS.items():
        result, handle = comm_func.all_reduce(given, name)
        assert_is_none(handle)
        yield Check(f"all_reduce {op}", tensors.read(result), combined(everyone(size), op))
    result, handle = comm_func.all_reduce(given, async_op=True)
    assert_returned(handle).wait()
    yield Check("all_reduce with a handle", tensors.read(result), combined(everyone(size), "SUM"))
    yield Check("what was given to all_reduce", tensors.read(given), numbers(rank))


def _broadcast(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        result = comm_func.broadcast(tensors.make(numbers(rank)), root)
        yield Check(f"broadcast from {root}", tensors.read(result), numbers(root))


def _all_gather_into_tensor(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    result, handle = comm_func.all_gather_into_tensor(tensors.make(numbers(rank)))
    assert_is_none(handle)
    yield Check("all_gather_into_tensor", tensors.read(result), oracle.joined(everyone(size)))
    given = tensors.make(numbers(rank, ()))  # whose rows are not defined
    yield refusal("all_gather_into_tensor", "shape ()", comm_func.all_gather_into_tensor, given)


def _reduce(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        for op, name in _OPS.items():
            given = tensors.make(numbers(rank))
            result = comm_func.reduce(given, root, name)
            if rank == root:
                yield Check(f"reduce {op} to {root}", tensors.read(result), combined(everyone(size), op))
            yield Check("what was given to reduce", tensors.read(given), numbers(rank))


def _reduce_scatter(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    everything = everyone(size, (2 * size, 2))
    for op, name in _OPS.items():
        result, handle = comm_func.reduce_scatter_tensor(tensors.make(everything[rank]), name)
        assert_is_none(handle)
        rows = slice(2 * rank, 2 * rank + 2)
        yield Check(
            f"reduce_scatter_tensor {op}", tensors.read(result), combined([one[rows] for one in everything], op)
        )


def _all_to_all(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for form in ("equal", "unequal"):
        parts, expected = exchange(rank, size, form)
        for shapes in ([part.shape for part in expected], [tensors.blank(part.shape) for part in expected]):
            results, handle = comm_func.all_to_all_with_output_shape(shapes, tensors.make_all(parts))
            assert_is_none(handle)
            yield Check(f"all_to_all_with_output_shape {form}", tensors.read_all(results), expected)


def _all_to_all_single(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    function = comm_func.all_to_all_single_with_output_shape
    parts, expected = exchange(rank, size, "equal")
    result, handle = function((2 * size, 3), tensors.make(oracle.joined(parts)))
    assert_is_none(handle)
    yield Check(f"{function.__name__} equal", tensors.read(result), oracle.joined(expected))
    parts, expected = exchange(rank, size, "unequal")
    sent, received = [len(part) for part in parts], [len(part) for part in expected]
    result, handle = function((sum(received), 3), tensors.make(oracle.joined(parts)), received, sent)
    assert_is_none(handle)
    yield Check(f"{function.__name__} unequal", tensors.read(result), oracle.joined(expected))


def _gather_and_scatter(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        result = comm_func.gather_into_tensor(tensors.make(numbers(rank)), root)
        if rank == root:
            yield Check(f"gather_into_tensor to {root}", tensors.read(result), oracle.joined(everyone(size)))
        result = comm_func.scatter_tensor(tensors.make(numbers(rank, (2 * size, 3))), root)
        expected = numbers(root, (2 * size, 3))[2 * rank : 2 * rank + 2]
        yield Check(f"scatter_tensor from {root}", tensors.read(result), expected)


def _send_and_recv(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    tensor = tensors.make(numbers(rank))
    if rank > 0:
        tensor = comm_func.recv(tensor, previous)
    if rank < size - 1:
        comm_func.send(tensor, following)
    yield Check("send and recv from rank to rank", tensors.read(tensor), numbers(0))
    sent = comm_func.isend(tensors.make(numbers(rank)), following)
    result, handle = comm_func.irecv(tensors.blank((2, 3)), previous)
    assert_returned(handle).wait()
    assert_returned(sent).wait()
    yield Check("isend and irecv in a ring", tensors.read(result), numbers(previous))


def _batch_isend_irecv(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    sends_first = [
        comm_func.P2POp("isend", tensors.make(numbers(rank)), following),
        comm_func.P2POp(comm_func.irecv, tensors.blank((2, 3)), previous),
    ]
    results = comm_func.batch_isend_irecv(sends_first)
    yield Check("what batch_isend_irecv returns", (type(results), len(results)), (tuple, 2))
    yield Check("batch_isend_irecv", tensors.read(results[1]), numbers(previous))


def _barrier(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    def all_times(time: Array) -> list[Array]:
        result, _ = comm_func.all_gather_into_tensor(tensors.make(time))
        return list(np.split(tensors.read(result), size))

    yield waited(rank, comm_func.barrier, all_times)


def _init(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
    communication.release()
    communication.init()
    yield Check("get_rank and get_group_size", (communication.get_rank(), communication.get_group_size()), (rank, size))
    yield from _all_gather_into_tensor(tensors, rank, size)


COMM_FUNC: dict[str, Call] = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "reduce": _reduce,
    "reduce_scatter, list and tensor": _reduce_scatter,
    "all_to_all (list)": _all_to_all,
    "all_to_all_single": _all_to_all_single,
    "gather and scatter": _gather_and_scatter,
    "send and recv": _send_and_recv,
    "batch_isend_irecv": _batch_isend_irecv,
    "barrier": _barrier,
    "init_process_group": _init,
}
