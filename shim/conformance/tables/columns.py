"""The columns of the tables, with what each API has of its own beside the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.paddle_3.distributed as paddle
import shim.frontends.torch.distributed as torch
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_returned
from shim.conformance.kinds import TensorKind
from shim.conformance.tables.cells import Call, Cell, Column, dtype_cells, operation_cells
from shim.conformance.tables.checks import Check, combined, everyone, exchange, numbers, reduce_ops_of, refusal
from shim.conformance.tables.comm_func_calls import COMM_FUNC
from shim.conformance.tables.in_place import CONCATENATED, LIST, STACKED, WITHOUT_DIMENSIONS, InPlaceApi
from shim.conformance.tables.primitive_calls import (
    OPS,
    PRIMITIVES,
    all_gather_of_dtype,
    all_reduce_of_dtype,
    broadcast_of_dtype,
)
from shim.frontends.mindspore import communication
from shim.frontends.paddle_3.distributed import stream

_FACTOR = 0.5


class _Torch(InPlaceApi):
    dist: ClassVar[Any] = torch
    ops: ClassVar[Mapping[str, Any]] = {op: getattr(torch.ReduceOp, op) for op in OPS}
    gathering = tuple(
        (getattr(torch, name), (CONCATENATED, STACKED, WITHOUT_DIMENSIONS))
        for name in ("all_gather_into_tensor", "all_gather_single")
        if hasattr(torch, name)  # an older release may not have it
    )
    scattering = (
        (torch.reduce_scatter, (LIST,)),
        *(
            (getattr(torch, name), (CONCATENATED, STACKED))
            for name in ("reduce_scatter_tensor", "reduce_scatter_single")
            if hasattr(torch, name)
        ),
    )
    all_to_all = staticmethod(torch.all_to_all)
    all_to_all_single = staticmethod(torch.all_to_all_single)
    done = staticmethod(assert_is_none)

    def enter(self, rank: int, size: int) -> None:
        torch.init_process_group("gloo", world_size=size, rank=rank)

    def _all_reduce(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        yield from super()._all_reduce(tensors, rank, size)
        for op in ("BAND", "BOR", "BXOR"):
            tensor = tensors.make(numbers(rank, dtype="int64"))
            assert_is_none(torch.all_reduce(tensor, getattr(torch.ReduceOp, op)))
            yield Check(f"all_reduce {op}", tensors.read(tensor), combined(everyone(size, dtype="int64"), op))
        tensor = tensors.make(numbers(rank))
        assert_is_none(torch.all_reduce(tensor, torch._make_nccl_premul_sum(_FACTOR)))
        scaled = oracle.reduce_elements(everyone(size), "PREMUL_SUM", [_FACTOR] * size)
        yield Check("all_reduce PREMUL_SUM", tensors.read(tensor), scaled)

    def _broadcast(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        yield from super()._broadcast(tensors, rank, size)
        for root in range(size):
            tensor = tensors.make(numbers(rank))
            assert_is_none(torch.broadcast(tensor, group_src=root))
            yield Check(f"broadcast from group_src={root}", tensors.read(tensor), numbers(root))


class _Paddle(InPlaceApi):
    """Paddle's functions with Paddle 3's order of arguments."""

    dist: ClassVar[Any] = paddle
    ops: ClassVar[Mapping[str, Any]] = {op: getattr(paddle.ReduceOp, {"PRODUCT": "PROD"}.get(op, op)) for op in OPS}
    gathering = ((paddle.all_gather, (CONCATENATED, STACKED, WITHOUT_DIMENSIONS)),)
    scattering = ((paddle.reduce_scatter, (LIST, CONCATENATED)),)
    all_to_all = staticmethod(paddle.alltoall)
    all_to_all_single = staticmethod(paddle.alltoall_single)
    done = staticmethod(assert_returned)
    sends_first = True
    fills_lists = True

    def calls(self) -> dict[str, Call]:
        return {**super().calls(), "stream, calc stream": _stream}

    def _all_gather(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        yield from super()._all_gather(tensors, rank, size)
        outputs = [tensors.blank((2, 3)) for _ in range(size)]
        assert_returned(paddle.all_gather(outputs, tensors.make(numbers(rank))))
        yield Check("all_gather into a list of tensors", tensors.read_all(outputs), everyone(size))

    def _all_to_all(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        yield from super()._all_to_all(tensors, rank, size)
        parts, expected = exchange(rank, size, "equal")
        outputs: list[Any] = []
        assert_returned(paddle.alltoall(outputs, tensors.make_all(parts)))
        yield Check("alltoall into an empty list", tensors.read_all(outputs), expected)

    def _received(self, receive: Callable[..., Any], thing: Any, peer: int) -> Iterator[Check]:
        """Receive; a tensor's receiving returns a task, that of objects nothing."""
        returned = receive(thing, peer)
        (assert_returned if receive is paddle.recv else assert_is_none)(returned)
        yield from ()

    def _all_gather_object(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        found: list[Any] = ["there before"]
        paddle.all_gather_object(found, {"rank": rank})
        yield Check("all_gather_object", found, ["there before", *({"rank": one} for one in range(size))])

    def _gathered_objects(self, rank: int, size: int, root: int) -> Iterator[Check]:
        """Paddle has no gather_object."""
        yield from ()

    def _init(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        group = assert_returned(paddle.init_parallel_env())
        yield Check("the group's rank and ranks", (group.rank, group.ranks), (rank, list(range(size))))
        yield Check("get_rank and get_world_size", (paddle.get_rank(), paddle.get_world_size()), (rank, size))
        yield from self._all_gather(tensors, rank, size)


class _Mint(InPlaceApi):
    dist: ClassVar[Any] = mint
    ops: ClassVar[Mapping[str, Any]] = OPS
    gathering = ((mint.all_gather_into_tensor, (CONCATENATED, WITHOUT_DIMENSIONS)),)
    scattering = ((mint.reduce_scatter, (LIST,)), (mint.reduce_scatter_tensor, (CONCATENATED,)))
    all_to_all = staticmethod(mint.all_to_all)
    all_to_all_single = staticmethod(mint.all_to_all_single)
    done = staticmethod(assert_is_none)
    asks_all = True

    def source(self, peer: int) -> int:
        return 0  # whoever has sent it

    def _batch_isend_irecv(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        following, previous = (rank + 1) % size, (rank - 1) % size
        output = tensors.blank((2, 3))
        sends_first = [
            mint.P2POp("isend", tensors.make(numbers(rank)), following),
            mint.P2POp(mint.irecv, output, previous),
        ]
        handles = mint.batch_isend_irecv(sends_first)
        yield Check("how many handles batch_isend_irecv returns", len(handles), 1)
        handles[0].wait()
        yield Check("batch_isend_irecv", tensors.read(output), numbers(previous))

    def all_reduce_of_dtype(self, tensors: TensorKind, rank: int, size: int, dtype: str) -> Iterator[Check]:
        for op in reduce_ops_of(dtype):
            tensor = tensors.make(numbers(rank, dtype=dtype))
            mint.all_reduce(tensor, OPS[op])
            yield Check(f"all_reduce {op} of {dtype}", tensors.read(tensor), combined(everyone(size, dtype=dtype), op))
        if not reduce_ops_of(dtype):
            yield refusal("all_reduce", dtype, mint.all_reduce, tensors.make(numbers(rank, dtype=dtype)))

    def all_gather_of_dtype(self, tensors: TensorKind, rank: int, size: int, dtype: str) -> Iterator[Check]:
        outputs = self._outputs(tensors, size, dtype=dtype)
        mint.all_gather(outputs, tensors.make(numbers(rank, dtype=dtype)))
        yield Check(f"all_gather of {dtype}", tensors.read_all(outputs), everyone(size, dtype=dtype))


def _stream(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
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


def _stream_parts(tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
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


_MINDSPORE = "mindspore 2.10"
_MOVES_ALONE, _ARITHMETIC_REFUSED = (
    "moves; arithmetic refused",
    "arithmetic refused",
)  # float8, of which no framework defines a sum
_TORCH = Column("torch", "gloo, 2.13", "torch", torch.init_process_group)
_PADDLE = Column("paddle", "gloo, 3.3.1", "paddle", paddle.init_parallel_env)


def _of_mint(name: str) -> Column:
    return Column(name, _MINDSPORE, "mindspore", mint.init_process_group)


def _of_mindspore(name: str) -> Column:
    return Column(name, _MINDSPORE, "mindspore", communication.init)


CELLS: tuple[Cell, ...] = (
    *operation_cells(_TORCH, _Torch().calls()),
    *dtype_cells(_TORCH, _Torch().of_dtype, _MOVES_ALONE),
    *operation_cells(_PADDLE, _Paddle().calls()),
    *dtype_cells(_PADDLE, _Paddle().of_dtype, _MOVES_ALONE),
    *operation_cells(_of_mint("mint"), _Mint().calls()),
    *dtype_cells(_of_mint("mint.all_reduce"), _Mint().all_reduce_of_dtype, _ARITHMETIC_REFUSED),
    *dtype_cells(_of_mint("mint.all_gather"), _Mint().all_gather_of_dtype),
    *operation_cells(_of_mindspore("comm_func"), COMM_FUNC),
    *operation_cells(_of_mindspore("primitives"), PRIMITIVES),
    *dtype_cells(_of_mindspore("AllReduce"), all_reduce_of_dtype, _ARITHMETIC_REFUSED),
    *dtype_cells(_of_mindspore("AllGather"), all_gather_of_dtype),
    *dtype_cells(_of_mindspore("Broadcast"), broadcast_of_dtype),
)
