"""What the tables ask of ``mindspore.mint.distributed``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import shim.frontends.mindspore.mint.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_returned
from shim.conformance.oracle import Array
from shim.conformance.tables.cells import ABSENT, Column, dtype_cells, operation_cells
from shim.conformance.tables.checks import Check, reduce_ops_of, refusal, waited
from shim.conformance.tables.elements import Tensors, combined, everyone, exchange, numbers

OPS = {"SUM": "sum", "AVG": "avg", "PRODUCT": "prod", "MIN": "min", "MAX": "max"}  # the oracle's name: MindSpore's


def _all_reduce(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for op, name in OPS.items():
        tensor = tensors.make(numbers(rank))
        assert_is_none(dist.all_reduce(tensor, name))
        yield Check(f"all_reduce {op}", tensors.read(tensor), combined(everyone(size), op))


def _broadcast(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        tensor = tensors.make(numbers(rank))
        assert_is_none(dist.broadcast(tensor, root))
        yield Check(f"broadcast from {root}", tensors.read(tensor), numbers(root))


def _all_gather(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    outputs = [tensors.blank((2, 3)) for _ in range(size)]
    assert_is_none(dist.all_gather(outputs, tensors.make(numbers(rank))))
    yield Check("all_gather", tensors.read_all(outputs), everyone(size))


def _all_gather_into_tensor(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    output = tensors.blank((2 * size, 3))
    assert_is_none(dist.all_gather_into_tensor(output, tensors.make(numbers(rank))))
    yield Check("all_gather_into_tensor", tensors.read(output), oracle.joined(everyone(size)))
    output = tensors.blank((size,))
    assert_is_none(dist.all_gather_into_tensor(output, tensors.make(numbers(rank, ()))))
    flat = oracle.joined(one.reshape(1) for one in everyone(size, ()))
    yield Check("all_gather_into_tensor without dimensions", tensors.read(output), flat)


def _reduce(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        for op, name in OPS.items():
            tensor = tensors.make(numbers(rank))
            assert_is_none(dist.reduce(tensor, root, name))
            expected = combined(everyone(size), op) if rank == root else numbers(rank)
            yield Check(f"reduce {op} to {root}", tensors.read(tensor), expected)


def _reduce_scatter(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    everything = everyone(size, (size, 2))
    for op, name in OPS.items():
        expected = combined([whole[rank] for whole in everything], op)
        output = tensors.blank((2,))
        assert_is_none(dist.reduce_scatter(output, tensors.make_all(everything[rank]), name))
        yield Check(f"reduce_scatter {op}", tensors.read(output), expected)
        output = tensors.blank((2,))
        assert_is_none(dist.reduce_scatter_tensor(output, tensors.make(everything[rank].reshape(-1)), name))
        yield Check(f"reduce_scatter_tensor {op}", tensors.read(output), expected)


def _all_to_all(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for form in ("equal", "unequal"):
        parts, expected = exchange(rank, size, form)
        outputs = [tensors.blank(part.shape) for part in expected]
        assert_is_none(dist.all_to_all(outputs, tensors.make_all(parts)))
        yield Check(f"all_to_all {form}", tensors.read_all(outputs), expected)


def _all_to_all_single(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    parts, expected = exchange(rank, size, "equal")
    output = tensors.blank((2 * size, 3))
    assert_is_none(dist.all_to_all_single(output, tensors.make(oracle.joined(parts))))
    yield Check("all_to_all_single equal", tensors.read(output), oracle.joined(expected))
    parts, expected = exchange(rank, size, "unequal")
    sent, received = [len(part) for part in parts], [len(part) for part in expected]
    output = tensors.blank((sum(received), 3))
    assert_is_none(dist.all_to_all_single(output, tensors.make(oracle.joined(parts)), received, sent))
    yield Check("all_to_all_single unequal", tensors.read(output), oracle.joined(expected))


def _gather_and_scatter(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        outputs = [tensors.blank((2, 3)) for _ in range(size)]
        assert_is_none(dist.gather(tensors.make(numbers(rank)), outputs, root))
        if rank == root:
            yield Check(f"gather to {root}", tensors.read_all(outputs), everyone(size))
        output = tensors.blank((3,))
        assert_is_none(dist.scatter(output, tensors.make_all(numbers(rank, (size, 3))), root))
        yield Check(f"scatter from {root}", tensors.read(output), numbers(root, (size, 3))[rank])


def _send_and_recv(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    tensor = tensors.make(numbers(rank))
    if rank > 0:
        yield Check("what recv returns", dist.recv(tensor, previous), 0)
    if rank < size - 1:
        dist.send(tensor, following)
    yield Check("send and recv from rank to rank", tensors.read(tensor), numbers(0))
    output = tensors.blank((2, 3))
    for handle in (dist.isend(tensors.make(numbers(rank)), following), dist.irecv(output, previous)):
        assert_returned(handle).wait()
    yield Check("isend and irecv in a ring", tensors.read(output), numbers(previous))


def _batch_isend_irecv(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    output = tensors.blank((2, 3))
    sends_first = [
        dist.P2POp("isend", tensors.make(numbers(rank)), following),
        dist.P2POp(dist.irecv, output, previous),
    ]
    handles = dist.batch_isend_irecv(sends_first)
    yield Check("how many handles batch_isend_irecv returns", len(handles), 1)
    handles[0].wait()
    yield Check("batch_isend_irecv", tensors.read(output), numbers(previous))


def _barrier(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    def all_times(time: Array) -> list[Array]:
        outputs = [tensors.blank(time.shape, "float64") for _ in range(size)]
        dist.all_gather(outputs, tensors.make(time))
        return tensors.read_all(outputs)

    yield waited(rank, dist.barrier, all_times)


def _all_gather_object(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    found: list[Any] = [None] * size
    dist.all_gather_object(found, {"rank": rank})
    yield Check("all_gather_object", found, [{"rank": one} for one in range(size)])


def _other_objects(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        objects: list[Any] = [f"of rank {rank}", {rank}]
        dist.broadcast_object_list(objects, root)
        yield Check(f"broadcast_object_list from {root}", objects, [f"of rank {root}", {root}])
        found: list[Any] | None = [None] * size if rank == root else None
        dist.gather_object({"rank": rank}, found, root)
        if found is not None:
            yield Check(f"gather_object to {root}", found, [{"rank": one} for one in range(size)])
        mine: list[Any] = [None]
        given = [f"{root} to {one}" for one in range(size)]
        dist.scatter_object_list(mine, given, root)
        yield Check(f"scatter_object_list from {root}", mine, [f"{root} to {rank}"])
    passed: list[Any] = [{"rank": rank}, rank]
    if rank > 0:
        yield Check("what recv_object_list returns", dist.recv_object_list(passed, rank - 1), 0)
    if rank < size - 1:
        dist.send_object_list(passed, rank + 1)
    yield Check("send_object_list and recv_object_list", passed, [{"rank": 0}, 0])


def _init_process_group(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    dist.destroy_process_group()
    yield Check("is_initialized after destroy_process_group", dist.is_initialized(), False)
    dist.init_process_group()
    yield Check("get_rank and get_world_size", (dist.get_rank(), dist.get_world_size()), (rank, size))
    yield from _all_gather(tensors, rank, size)


def _dtype_all_reduce(tensors: Tensors, rank: int, size: int, dtype: str) -> Iterator[Check]:
    for op in reduce_ops_of(dtype):
        tensor = tensors.make(numbers(rank, dtype=dtype))
        dist.all_reduce(tensor, OPS[op])
        yield Check(f"all_reduce {op} of {dtype}", tensors.read(tensor), combined(everyone(size, dtype=dtype), op))
    if not reduce_ops_of(dtype):
        yield refusal("all_reduce", dtype, dist.all_reduce, tensors.make(numbers(rank, dtype=dtype)))


def _dtype_all_gather(tensors: Tensors, rank: int, size: int, dtype: str) -> Iterator[Check]:
    outputs = [tensors.blank((2, 3), dtype) for _ in range(size)]
    dist.all_gather(outputs, tensors.make(numbers(rank, dtype=dtype)))
    yield Check(f"all_gather of {dtype}", tensors.read_all(outputs), everyone(size, dtype=dtype))


_REAL = "mindspore 2.10"
_COLUMN = Column("mint", _REAL, "mindspore", dist.init_process_group)
_ALL_REDUCE = Column("mint.all_reduce", _REAL, "mindspore", dist.init_process_group)
_ALL_GATHER = Column("mint.all_gather", _REAL, "mindspore", dist.init_process_group)
_ERROR = "RuntimeError"
_UNREGISTERED = "kernel unregistered"

CELLS = (
    *operation_cells(
        _COLUMN,
        {
            "all_reduce": ("yes", _all_reduce),
            "broadcast": ("yes", _broadcast),
            "all_gather (list)": ("yes", _all_gather),
            "all_gather_into_tensor": (_UNREGISTERED, _all_gather_into_tensor),
            "reduce": (_UNREGISTERED, _reduce),
            "reduce_scatter, list and tensor": (_UNREGISTERED, _reduce_scatter),
            "all_to_all (list)": (_UNREGISTERED, _all_to_all),
            "all_to_all_single": (_UNREGISTERED, _all_to_all_single),
            "gather and scatter": ("yes", _gather_and_scatter),
            "send and recv": ("recv only", _send_and_recv),
            "batch_isend_irecv": ("not tried", _batch_isend_irecv),
            "barrier": ("yes", _barrier),
            "all_gather_object": ("yes", _all_gather_object),
            "other object collectives": ("no", _other_objects),
            "init_process_group": ("never", _init_process_group),
            "stream, calc stream": (ABSENT, None),
        },
    ),
    *dtype_cells(
        _ALL_REDUCE,
        _dtype_all_reduce,
        {
            "bool": _ERROR,
            "uint8": _ERROR,
            "int8": "yes",
            "int16": "yes",
            "int32, int64": "yes",
            "uint16, uint32, uint64": _ERROR,
            "float16": "yes",
            "bfloat16": "yes",
            "float32": "yes",
            "float64": _ERROR,
            "complex64": _ERROR,
            "complex128": _ERROR,
            "float8_e4m3fn, float8_e5m2": "not tried",
        },
        of_float8="arithmetic refused",
    ),
    *dtype_cells(
        _ALL_GATHER,
        _dtype_all_gather,
        {
            "bool": _ERROR,
            "uint8": "yes",
            "int8": "yes",
            "int16": _ERROR,
            "int32, int64": "yes",
            "uint16, uint32, uint64": "yes",
            "float16": "yes",
            "bfloat16": "yes",
            "float32": "yes",
            "float64": "yes",
            "complex64": _ERROR,
            "complex128": "TypeError",
            "float8_e4m3fn, float8_e5m2": "not tried",
        },
    ),
)
