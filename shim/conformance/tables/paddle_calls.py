"""What the tables ask of ``paddle.distributed``, with Paddle 3's order of arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import shim.frontends.paddle_3.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_returned
from shim.conformance.oracle import Array
from shim.conformance.tables.cells import MOVES_ALONE, Column, dtype_cells, operation_cells
from shim.conformance.tables.checks import Check, waited
from shim.conformance.tables.dtype_calls import every_way
from shim.conformance.tables.elements import Tensors, combined, everyone, exchange, numbers
from shim.frontends.paddle_3.distributed import stream

_OPS = {"SUM": "SUM", "AVG": "AVG", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX"}  # the oracle's name: Paddle's


def _reduce_op(op: str) -> Any:
    return getattr(dist.ReduceOp, _OPS[op])


def _all_reduce(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for op in _OPS:
        tensor = tensors.make(numbers(rank))
        assert_returned(dist.all_reduce(tensor, _reduce_op(op)))
        yield Check(f"all_reduce {op}", tensors.read(tensor), combined(everyone(size), op))


def _broadcast(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        tensor = tensors.make(numbers(rank))
        assert_returned(dist.broadcast(tensor, root))
        yield Check(f"broadcast from {root}", tensors.read(tensor), numbers(root))


def _all_gather(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for outputs in ([], [tensors.blank((2, 3)) for _ in range(size)]):
        form = f"all_gather into a list of {len(outputs)}"
        assert_returned(dist.all_gather(outputs, tensors.make(numbers(rank))))
        yield Check(form, tensors.read_all(outputs), everyone(size))


def _all_gather_into_tensor(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for form, expected in (
        ("concatenated", oracle.joined(everyone(size))),
        ("stacked", np.stack(everyone(size))),
        ("without dimensions", np.stack(everyone(size, ()))),
    ):
        output = tensors.blank(expected.shape)
        shape = () if form == "without dimensions" else (2, 3)
        assert_returned(dist.all_gather(output, tensors.make(numbers(rank, shape))))
        yield Check(f"all_gather into a tensor, {form}", tensors.read(output), expected)


def _reduce(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        for op in _OPS:
            tensor = tensors.make(numbers(rank))
            assert_returned(dist.reduce(tensor, root, _reduce_op(op)))
            expected = combined(everyone(size), op) if rank == root else numbers(rank)
            yield Check(f"reduce {op} to {root}", tensors.read(tensor), expected)


def _reduce_scatter(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    everything = everyone(size, (size, 2))
    for op in _OPS:
        expected = combined([whole[rank] for whole in everything], op)
        for form, given in (
            ("list", tensors.make_all(everything[rank])),
            ("tensor", tensors.make(everything[rank].reshape(-1))),
        ):
            output = tensors.blank((2,))
            assert_returned(dist.reduce_scatter(output, given, _reduce_op(op)))
            yield Check(f"reduce_scatter {op} of a {form}", tensors.read(output), expected)


def _alltoall(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for form in ("equal", "unequal"):
        parts, expected = exchange(rank, size, form)
        outputs = [tensors.blank(part.shape) for part in expected]
        assert_returned(dist.alltoall(outputs, tensors.make_all(parts)))
        yield Check(f"alltoall {form}", tensors.read_all(outputs), expected)
    parts, expected = exchange(rank, size, "equal")
    outputs = []
    assert_returned(dist.alltoall(outputs, tensors.make_all(parts)))
    yield Check("alltoall into an empty list", tensors.read_all(outputs), expected)


def _alltoall_single(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    parts, expected = exchange(rank, size, "equal")
    output = tensors.blank((2 * size, 3))
    assert_returned(dist.alltoall_single(output, tensors.make(oracle.joined(parts))))
    yield Check("alltoall_single equal", tensors.read(output), oracle.joined(expected))
    parts, expected = exchange(rank, size, "unequal")
    sent, received = [len(part) for part in parts], [len(part) for part in expected]
    output = tensors.blank((sum(received), 3))
    assert_returned(dist.alltoall_single(output, tensors.make(oracle.joined(parts)), sent, received))
    yield Check("alltoall_single unequal", tensors.read(output), oracle.joined(expected))


def _gather_and_scatter(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        outputs: list[Any] | None = [] if rank == root else None
        assert_returned(dist.gather(tensors.make(numbers(rank)), outputs, root))
        if outputs is not None:
            yield Check(f"gather to {root}", tensors.read_all(outputs), everyone(size))
        parts = tensors.make_all(numbers(root, (size, 3))) if rank == root else None
        output = tensors.blank((3,))
        assert_returned(dist.scatter(output, parts, root))
        yield Check(f"scatter from {root}", tensors.read(output), numbers(root, (size, 3))[rank])


def _send_and_recv(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    tensor = tensors.make(numbers(rank))
    if rank > 0:
        assert_returned(dist.recv(tensor, previous))
    if rank < size - 1:
        assert_returned(dist.send(tensor, following))
    yield Check("send and recv from rank to rank", tensors.read(tensor), numbers(0))
    output = tensors.blank((2, 3))
    for task in (dist.isend(tensors.make(numbers(rank)), following), dist.irecv(output, previous)):
        assert_returned(task).wait()
    yield Check("isend and irecv in a ring", tensors.read(output), numbers(previous))


def _batch_isend_irecv(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    output = tensors.blank((2, 3))
    sends_first = [
        dist.P2POp(dist.isend, tensors.make(numbers(rank)), following),
        dist.P2POp(dist.irecv, output, previous),
    ]
    for task in assert_returned(dist.batch_isend_irecv(sends_first)):
        task.wait()
    yield Check("batch_isend_irecv", tensors.read(output), numbers(previous))


def _barrier(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    def all_times(time: Array) -> list[Array]:
        outputs: list[Any] = []
        dist.all_gather(outputs, tensors.make(time))
        return tensors.read_all(outputs)

    yield waited(rank, dist.barrier, all_times)


def _all_gather_object(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    found: list[Any] = ["there before"]
    dist.all_gather_object(found, {"rank": rank})
    yield Check("all_gather_object", found, ["there before", *({"rank": one} for one in range(size))])


def _other_objects(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        objects: list[Any] = [f"of rank {rank}", {rank}]
        dist.broadcast_object_list(objects, root)
        yield Check(f"broadcast_object_list from {root}", objects, [f"of rank {root}", {root}])
        mine: list[Any] = ["emptied"]
        given = [f"{root} to {one}" for one in range(size)] if rank == root else None
        dist.scatter_object_list(mine, given, root)
        yield Check(f"scatter_object_list from {root}", mine, [f"{root} to {rank}"])
    passed: list[Any] = [{"rank": rank}, rank]
    if rank > 0:
        dist.recv_object_list(passed, rank - 1)
    if rank < size - 1:
        dist.send_object_list(passed, rank + 1)
    yield Check("send_object_list and recv_object_list", passed, [{"rank": 0}, 0])


def _init_parallel_env(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    group = assert_returned(dist.init_parallel_env())
    yield Check("the group's rank and ranks", (group.rank, group.ranks), (rank, list(range(size))))
    yield Check("get_rank and get_world_size", (dist.get_rank(), dist.get_world_size()), (rank, size))
    yield from _all_gather(tensors, rank, size)


def _stream(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    tensor = tensors.make(numbers(rank))
    stream.all_reduce(tensor, use_calc_stream=True)
    yield Check("stream.all_reduce", tensors.read(tensor), combined(everyone(size), "SUM"))
    tensor = tensors.make(numbers(rank))
    stream.broadcast(tensor, 0, use_calc_stream=True)
    yield Check("stream.broadcast", tensors.read(tensor), numbers(0))
    tensor = tensors.make(numbers(rank))
    stream.reduce(tensor, use_calc_stream=True)
    yield Check("stream.reduce", tensors.read(tensor), combined(everyone(size), "SUM") if rank == 0 else numbers(rank))
    outputs: list[Any] = []
    stream.all_gather(outputs, tensors.make(numbers(rank)), use_calc_stream=True)
    yield Check("stream.all_gather", tensors.read_all(outputs), everyone(size))
    output = tensors.blank((2 * size, 3))
    stream.all_gather(output, tensors.make(numbers(rank)), use_calc_stream=True)
    yield Check("stream.all_gather into a tensor", tensors.read(output), oracle.joined(everyone(size)))
    yield from _stream_parts(tensors, rank, size)
    outputs = []
    stream.gather(tensors.make(numbers(rank)), outputs if rank == 0 else None, use_calc_stream=True)
    if rank == 0:
        yield Check("stream.gather", tensors.read_all(outputs), everyone(size))
    output = tensors.make(numbers(rank))
    if rank > 0:
        stream.recv(output, rank - 1, use_calc_stream=True)
    if rank < size - 1:
        stream.send(output, rank + 1, use_calc_stream=True)
    yield Check("stream.send and stream.recv", tensors.read(output), numbers(0))


def _stream_parts(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    everything = everyone(size, (size, 3))
    for form, given in (("list", tensors.make_all), ("tensor", lambda rows: tensors.make(rows.reshape(-1)))):
        output = tensors.blank((3,))
        stream.reduce_scatter(output, given(everything[rank]), use_calc_stream=True)
        expected = combined([whole[rank] for whole in everything], "SUM")
        yield Check(f"stream.reduce_scatter of a {form}", tensors.read(output), expected)
        output = tensors.blank((3,))
        stream.scatter(output, given(everything[0]) if rank == 0 else None, use_calc_stream=True)
        yield Check(f"stream.scatter of a {form}", tensors.read(output), everything[0][rank])
    parts, expected_parts = exchange(rank, size, "unequal")
    outputs = [tensors.blank(part.shape) for part in expected_parts]
    stream.alltoall(outputs, tensors.make_all(parts), use_calc_stream=True)
    yield Check("stream.alltoall", tensors.read_all(outputs), expected_parts)
    sent, received = [len(part) for part in parts], [len(part) for part in expected_parts]
    output = tensors.blank((sum(received), 3))
    whole = tensors.make(oracle.joined(parts))
    stream.alltoall_single(output, whole, received, sent, use_calc_stream=True)
    yield Check("stream.alltoall_single", tensors.read(output), oracle.joined(expected_parts))


def _dtype(tensors: Tensors, rank: int, size: int, dtype: str) -> Iterator[Check]:
    ops = {op: _reduce_op(op) for op in _OPS}
    yield from every_way(dist, ops, dist.alltoall_single, tensors, rank, size, dtype, lists_are_filled=True)


_COLUMN = Column("paddle", "gloo, 3.3.1", "paddle", dist.init_parallel_env)
_UNSUPPORTED = "not implemented"
_ENDS = "process ends"

CELLS = (
    *operation_cells(
        _COLUMN,
        {
            "all_reduce": ("yes", _all_reduce),
            "broadcast": ("yes", _broadcast),
            "all_gather (list)": ("yes", _all_gather),
            "all_gather_into_tensor": ("yes, by all_gather", _all_gather_into_tensor),
            "reduce": ("yes", _reduce),
            "reduce_scatter, list and tensor": (_UNSUPPORTED, _reduce_scatter),
            "all_to_all (list)": (_UNSUPPORTED, _alltoall),
            "all_to_all_single": ("no", _alltoall_single),
            "gather and scatter": ("yes", _gather_and_scatter),
            "send and recv": ("yes", _send_and_recv),
            "batch_isend_irecv": ("hangs if both send first", _batch_isend_irecv),
            "barrier": ("yes", _barrier),
            "all_gather_object": ("yes", _all_gather_object),
            "other object collectives": ("yes", _other_objects),
            "init_process_group": ("yes", _init_parallel_env),
            "stream, calc stream": (_UNSUPPORTED, _stream),
        },
    ),
    *dtype_cells(
        _COLUMN,
        _dtype,
        {
            "bool": "yes",
            "uint8": "yes",
            "int8": "yes",
            "int16": _ENDS,
            "int32, int64": "yes",
            "uint16, uint32, uint64": "no such dtype",
            "float16": "sums are inf",
            "bfloat16": "yes",
            "float32": "yes",
            "float64": "yes",
            "complex64": _ENDS,
            "complex128": _ENDS,
            "float8_e4m3fn, float8_e5m2": _ENDS,
        },
        of_float8=MOVES_ALONE,
    ),
)
