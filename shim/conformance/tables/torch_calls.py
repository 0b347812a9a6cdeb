"""What the tables ask of ``torch.distributed``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import shim.frontends.torch.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_returned
from shim.conformance.oracle import Array
from shim.conformance.tables.cells import ABSENT, MOVES_ALONE, Column, dtype_cells, operation_cells
from shim.conformance.tables.checks import Check, waited
from shim.conformance.tables.dtype_calls import every_way
from shim.conformance.tables.elements import Tensors, combined, everyone, exchange, numbers

_ORDINARY_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX")
_FACTOR = 0.5


def _all_reduce(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for op in _ORDINARY_OPS:
        tensor = tensors.make(numbers(rank))
        assert_is_none(dist.all_reduce(tensor, getattr(dist.ReduceOp, op)))
        yield Check(f"all_reduce {op}", tensors.read(tensor), combined(everyone(size), op))
    for op in ("BAND", "BOR", "BXOR"):
        tensor = tensors.make(numbers(rank, dtype="int64"))
        assert_is_none(dist.all_reduce(tensor, getattr(dist.ReduceOp, op)))
        yield Check(f"all_reduce {op}", tensors.read(tensor), combined(everyone(size, dtype="int64"), op))
    tensor = tensors.make(numbers(rank))
    assert_is_none(dist.all_reduce(tensor, dist._make_nccl_premul_sum(_FACTOR)))
    scaled = oracle.reduce_elements(everyone(size), "PREMUL_SUM", [_FACTOR] * size)
    yield Check("all_reduce PREMUL_SUM", tensors.read(tensor), scaled)


def _broadcast(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        for src, group_src in ((root, None), (None, root)):
            tensor = tensors.make(numbers(rank))
            assert_is_none(dist.broadcast(tensor, src, group_src=group_src))
            yield Check(f"broadcast src={src} group_src={group_src}", tensors.read(tensor), numbers(root))


def _all_gather(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    outputs = [tensors.blank((2, 3)) for _ in range(size)]
    assert_is_none(dist.all_gather(outputs, tensors.make(numbers(rank))))
    yield Check("all_gather", tensors.read_all(outputs), everyone(size))


def _all_gather_into_tensor(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for function in (dist.all_gather_into_tensor, dist.all_gather_single):
        for form, expected in (
            ("concatenated", oracle.joined(everyone(size))),
            ("stacked", np.stack(everyone(size))),
            ("without dimensions", np.stack(everyone(size, ()))),
        ):
            output = tensors.blank(expected.shape)
            shape = () if form == "without dimensions" else (2, 3)
            assert_is_none(function(output, tensors.make(numbers(rank, shape))))
            yield Check(f"{function.__name__} {form}", tensors.read(output), expected)


def _reduce(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    for root in range(size):
        for op in _ORDINARY_OPS:
            tensor = tensors.make(numbers(rank))
            assert_is_none(dist.reduce(tensor, root, getattr(dist.ReduceOp, op)))
            expected = combined(everyone(size), op) if rank == root else numbers(rank)
            yield Check(f"reduce {op} to {root}", tensors.read(tensor), expected)


def _reduce_scatter(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    everything = everyone(size, (size, 2))
    for op in _ORDINARY_OPS:
        reduce_op = getattr(dist.ReduceOp, op)
        expected = combined([whole[rank] for whole in everything], op)
        parts = tensors.make_all(everything[rank])
        output = tensors.blank((2,))
        assert_is_none(dist.reduce_scatter(output, parts, reduce_op))
        yield Check(f"reduce_scatter {op}", tensors.read(output), expected)
        for function in (dist.reduce_scatter_tensor, dist.reduce_scatter_single):
            for form, whole in (("concatenated", everything[rank].reshape(-1)), ("stacked", everything[rank])):
                output = tensors.blank((2,))
                assert_is_none(function(output, tensors.make(whole), reduce_op))
                yield Check(f"{function.__name__} {op} {form}", tensors.read(output), expected)


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
        outputs = [tensors.blank((2, 3)) for _ in range(size)] if rank == root else None
        assert_is_none(dist.gather(tensors.make(numbers(rank)), outputs, root))
        if outputs is not None:
            yield Check(f"gather to {root}", tensors.read_all(outputs), everyone(size))
        parts = tensors.make_all(numbers(root, (size, 3))) if rank == root else None
        output = tensors.blank((3,))
        assert_is_none(dist.scatter(output, parts, root))
        yield Check(f"scatter from {root}", tensors.read(output), numbers(root, (size, 3))[rank])


def _send_and_recv(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    tensor = tensors.make(numbers(rank))
    if rank > 0:
        yield Check("what recv returns", dist.recv(tensor, previous), previous)
    if rank < size - 1:
        dist.send(tensor, following)
    yield Check("send and recv from rank to rank", tensors.read(tensor), numbers(0))
    output = tensors.blank((2, 3))
    works = [dist.isend(tensors.make(numbers(rank)), following), dist.irecv(output, previous)]
    for work in works:
        assert_returned(work).wait()
    yield Check("isend and irecv in a ring", tensors.read(output), numbers(previous))


def _batch_isend_irecv(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    following, previous = (rank + 1) % size, (rank - 1) % size
    output = tensors.blank((2, 3))
    sends_first = [
        dist.P2POp(dist.isend, tensors.make(numbers(rank)), following),
        dist.P2POp(dist.irecv, output, previous),
    ]
    for work in dist.batch_isend_irecv(sends_first):
        work.wait()
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
        given = [f"{root} to {one}" for one in range(size)] if rank == root else None
        dist.scatter_object_list(mine, given, root)
        yield Check(f"scatter_object_list from {root}", mine, [f"{root} to {rank}"])
    passed: list[Any] = [{"rank": rank}, rank]
    if rank > 0:
        yield Check("what recv_object_list returns", dist.recv_object_list(passed, rank - 1), rank - 1)
    if rank < size - 1:
        dist.send_object_list(passed, rank + 1)
    yield Check("send_object_list and recv_object_list", passed, [{"rank": 0}, 0])


def _init_process_group(tensors: Tensors, rank: int, size: int) -> Iterator[Check]:
    dist.destroy_process_group()
    yield Check("is_initialized after destroy_process_group", dist.is_initialized(), False)
    dist.init_process_group("gloo", world_size=size, rank=rank)
    yield Check("get_rank and get_world_size", (dist.get_rank(), dist.get_world_size()), (rank, size))
    yield from _all_gather(tensors, rank, size)


def _dtype(tensors: Tensors, rank: int, size: int, dtype: str) -> Iterator[Check]:
    ops = {op: getattr(dist.ReduceOp, op) for op in _ORDINARY_OPS}
    yield from every_way(dist, ops, dist.all_to_all_single, tensors, rank, size, dtype, lists_are_filled=False)


_COLUMN = Column("torch", "gloo, 2.13", "torch", dist.init_process_group)
_REFUSED = "RuntimeError"

CELLS = (
    *operation_cells(
        _COLUMN,
        {
            "all_reduce": ("yes", _all_reduce),
            "broadcast": ("yes", _broadcast),
            "all_gather (list)": ("yes", _all_gather),
            "all_gather_into_tensor": ("concatenated only", _all_gather_into_tensor),
            "reduce": ("yes", _reduce),
            "reduce_scatter, list and tensor": ("yes", _reduce_scatter),
            "all_to_all (list)": ("equal shapes only", _all_to_all),
            "all_to_all_single": ("yes", _all_to_all_single),
            "gather and scatter": ("yes", _gather_and_scatter),
            "send and recv": ("yes", _send_and_recv),
            "batch_isend_irecv": ("yes", _batch_isend_irecv),
            "barrier": ("yes", _barrier),
            "all_gather_object": ("yes", _all_gather_object),
            "other object collectives": ("yes", _other_objects),
            "init_process_group": ("yes", _init_process_group),
            "stream, calc stream": (ABSENT, None),
        },
    ),
    *dtype_cells(
        _COLUMN,
        _dtype,
        {
            "bool": "yes",
            "uint8": "yes",
            "int8": "yes",
            "int16": _REFUSED,
            "int32, int64": "yes",
            "uint16, uint32, uint64": _REFUSED,
            "float16": "yes",
            "bfloat16": "yes",
            "float32": "yes",
            "float64": "yes",
            "complex64": "yes; gather: RuntimeError",
            "complex128": "yes",
            "float8_e4m3fn, float8_e5m2": _REFUSED,
        },
        of_float8=MOVES_ALONE,
    ),
)
