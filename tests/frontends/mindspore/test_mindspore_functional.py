"""The functions that return their results: comm_func, and ops.communication where it is switched over."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from mindspore_world import KINDS, SOME_DTYPES, assert_usable, check, make, numbers, of_all, world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.mindspore.mint.distributed as dist
import shim.frontends.mindspore.ops.communication as communication
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.communication import comm_func
from shim.frontends.mindspore.communication.comm_func import CommHandle


@contextlib.contextmanager
def returning(*names: str) -> Iterator[None]:
    """Let the functions of ops.communication called *names*, or all, return their results."""
    communication.set_comm_ops_inplace(False, list(names) or None)
    try:
        yield
    finally:
        communication.set_comm_ops_inplace(True)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_dtypes(rank: int, world_size: int, dtype: str) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, (2, 3), dtype), dtype)
        total = np.sum(of_all(2, (2, 3), dtype), axis=0).astype(numbers(0, 1, dtype).dtype)
        check("mindspore", comm_func.all_reduce(tensor)[0], total, dtype)
        check("mindspore", comm_func.all_gather_into_tensor(tensor)[0], np.concatenate(of_all(2, (2, 3), dtype)), dtype)
        check("mindspore", comm_func.reduce_scatter_tensor(tensor)[0], total[rank : rank + 1], dtype)
        check("mindspore", comm_func.broadcast(tensor, 1), numbers(1, (2, 3), dtype), dtype)
        reduced = comm_func.reduce(tensor, 1)
        check("mindspore", reduced, total if rank == 1 else np.zeros(1, total.dtype), dtype)


@pytest.mark.ranks(1, 3)
def test_collectives(rank: int, world_size: int) -> None:
    with world():
        for kind in KINDS:
            last = world_size - 1
            tensor = make(kind, numbers(rank, (2 * world_size, 3)))
            everything = of_all(world_size, (2 * world_size, 3))
            output, handle = comm_func.all_gather_into_tensor(tensor)
            assert handle is None
            check(kind, output, np.concatenate(everything))
            output, handle = comm_func.reduce_scatter_tensor(tensor, "max")
            assert handle is None
            check(kind, output, np.max(everything, axis=0)[2 * rank : 2 * rank + 2])
            check(kind, comm_func.broadcast(tensor, last), everything[last])
            check(kind, comm_func.broadcast(tensor), everything[0])
            nothing = np.zeros(1, "float32")
            check(kind, comm_func.reduce(tensor, last), np.sum(everything, axis=0) if rank == last else nothing)
            check(
                kind,
                comm_func.gather_into_tensor(tensor, last),
                np.concatenate(everything) if rank == last else nothing,
            )
            check(kind, comm_func.scatter_tensor(tensor, last), everything[last][2 * rank : 2 * rank + 2])
            check(kind, tensor, everything[rank])
            assert comm_func.barrier() is None


@pytest.mark.ranks(3)
def test_a_subgroup_is_asked_for_the_worlds_ranks(rank: int, world_size: int) -> None:
    with world():
        group = communication.new_group([0, 2])
        if rank != 1:
            tensor, both = make("mindspore", numbers(rank, 4)), [numbers(0, 4), numbers(2, 4)]
            own = rank // 2
            check("mindspore", comm_func.broadcast(tensor, 2, group), both[1])
            check("mindspore", comm_func.reduce(tensor, 2, "sum", group), sum(both) if own else np.zeros(1, "float32"))
            gathered = comm_func.gather_into_tensor(tensor, 2, group)
            check("mindspore", gathered, np.concatenate(both) if own else np.zeros(1, "float32"))
            check("mindspore", comm_func.scatter_tensor(tensor, 2, group), both[1][2 * own : 2 * own + 2])
            check("mindspore", comm_func.all_reduce(tensor, group=group)[0], sum(both))
            comm_func.barrier(group)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_tensor", [True, False])
def test_all_to_all_with_output_shape(rank: int, world_size: int, kind: str, by_tensor: bool) -> None:
    with world():
        inputs = [make(kind, numbers(rank * 10 + to, (1, rank + to + 1))) for to in range(world_size)]
        shapes: Sequence[Any] = tuple((source + rank + 1, 1) for source in range(world_size))
        if by_tensor:
            shapes = [make(kind, np.zeros(shape, "float32")) for shape in shapes]
        outputs, handle = comm_func.all_to_all_with_output_shape(shapes, inputs)
        assert (type(outputs), handle) == (tuple, None)
        for source in range(world_size):
            check(kind, outputs[source], numbers(source * 10 + rank, (source + rank + 1, 1)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_to_all_single_with_output_shape(rank: int, world_size: int, kind: str) -> None:
    """Rank i sends rank j (i + 2 * j) % 3 rows; MindSpore 2.10 takes the input's rows from the output's shape."""

    def rows(source: int, to: int) -> int:
        return (source + 2 * to) % 3 + (to == 0)

    with world():
        sent, received = [rows(rank, to) for to in range(3)], [rows(source, rank) for source in range(3)]
        tensor = make(kind, numbers(rank, (sum(sent), 2)))
        expected = []
        for source in range(3):
            start = sum(rows(source, to) for to in range(rank))
            whole = numbers(source, (sum(rows(source, to) for to in range(3)), 2))
            expected.append(whole[start : start + rows(source, rank)])
        for shape in ((sum(received), 2), make(kind, np.zeros((sum(received), 2), "float32"))):
            output, handle = comm_func.all_to_all_single_with_output_shape(shape, tensor, received, tuple(sent))
            assert handle is None
            check(kind, output, np.concatenate(expected))


@pytest.mark.ranks(2)
def test_all_to_all_single_of_equal_parts_and_of_nothing(rank: int, world_size: int) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, (4, 2)))
        output, _ = comm_func.all_to_all_single_with_output_shape((4, 2), tensor)
        rows = slice(2 * rank, 2 * rank + 2)
        check("mindspore", output, np.concatenate([array[rows] for array in of_all(2, (4, 2))]))
        received = (2 * rank, 2 * rank)  # all rows go to rank 1
        output, _ = comm_func.all_to_all_single_with_output_shape((4 * rank, 2), tensor[:2], received, (0, 2))
        check(
            "mindspore",
            output,
            np.concatenate([array[:2] for array in of_all(2, (4, 2))]) if rank else np.zeros((), "float32"),
        )


@pytest.mark.ranks(2)
def test_asynchronous_calls(rank: int, world_size: int) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, (2, 3)))
        calls: list[tuple[Any, Any]] = [
            comm_func.all_reduce(tensor, async_op=True),
            comm_func.all_gather_into_tensor(tensor, async_op=True),
            comm_func.reduce_scatter_tensor(tensor, async_op=True),
            comm_func.all_to_all_single_with_output_shape((2, 3), tensor, async_op=True),
            comm_func.all_to_all_with_output_shape([(1, 3)] * 2, [tensor[:1], tensor[1:]], async_op=True),
        ]
        for _, handle in reversed(calls):
            assert isinstance(handle, CommHandle)
            assert handle.wait() is None
        outputs = [output for output, _ in calls]
        total = sum(of_all(2, (2, 3)))
        exchanged = np.stack([array[rank] for array in of_all(2, (2, 3))])
        check("mindspore", outputs[0], total)
        check("mindspore", outputs[1], np.concatenate(of_all(2, (2, 3))))
        check("mindspore", outputs[2], total[rank : rank + 1])
        check("mindspore", outputs[3], exchanged)
        for source in range(2):
            check("mindspore", outputs[4][source], exchanged[source : source + 1])


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "reduce a list": (lambda one: comm_func.all_reduce([1.0]), TypeError, "tensor must be a tensor"),
    "op": (lambda one: comm_func.all_reduce(one, "avg"), TypeError, "op must be one of sum, prod, min, max, got 'avg'"),
    "op of scatter": (lambda one: comm_func.reduce_scatter_tensor(one, 0), TypeError, "op must be one of"),
    "op of reduce": (lambda one: comm_func.reduce(one, 0, "mean"), TypeError, "op must be one of"),
    "no group": (lambda one: comm_func.all_reduce(one, group=None), TypeError, "group must be a str, got NoneType"),
    "no group to barrier": (lambda one: comm_func.barrier(None), TypeError, "group must be a str, got NoneType"),
    "unknown group": (lambda one: comm_func.broadcast(one, 0, "none"), RuntimeError, "no group named 'none'"),
    "async": (lambda one: comm_func.all_gather_into_tensor(one, async_op=1), TypeError, "async_op must be a bool"),
    "gather 0-d": (
        lambda one: comm_func.all_gather_into_tensor(one.sum()[()] + np.zeros(())),
        ValueError,
        "dimension 0",
    ),
    "odd rows": (lambda one: comm_func.reduce_scatter_tensor(np.ones(3)), ValueError, "tensor must have rows for 2"),
    "scatter odd rows": (lambda one: comm_func.scatter_tensor(np.ones(3)), ValueError, "tensor must have rows for 2"),
    "root of text": (lambda one: comm_func.broadcast(one, "0"), TypeError, "src must be an int"),
    "root outside": (lambda one: comm_func.gather_into_tensor(one, 2), ValueError, "dst must be one of"),
    "root outside, as MindSpore raises": (lambda one: comm_func.scatter_tensor(one, 2), RuntimeError, "src must be"),
    "no shape": (
        lambda one: comm_func.all_to_all_single_with_output_shape(2, one),
        TypeError,
        "output_shape must be a",
    ),
    "shape of text": (
        lambda one: comm_func.all_to_all_single_with_output_shape(("2",), one),
        TypeError,
        "output_shape",
    ),
    "shapes": (lambda one: comm_func.all_to_all_with_output_shape([2, 2], [one, one]), TypeError, "output_shape_list"),
    "one shape": (lambda one: comm_func.all_to_all_with_output_shape([(2,)], [one, one]), TypeError, "for each of 2"),
    "no list": (lambda one: comm_func.all_to_all_with_output_shape([(2,)] * 2, one), TypeError, "input_tensor_list"),
    "numbers": (lambda one: comm_func.all_to_all_with_output_shape([()] * 2, [1.0, 2.0]), TypeError, "input_tensor_l"),
    "dtypes": (
        lambda one: comm_func.all_to_all_with_output_shape([(2,)] * 2, [one, np.ones(2)]),
        (TypeError, ValueError),  # type: ignore[dict-item]  # either of them
        "input_tensor_list|dtype",
    ),
    "splits": (
        lambda one: comm_func.all_to_all_single_with_output_shape((2,), one, [1, 1], [1, 2]),
        ValueError,
        "input_split_sizes",
    ),
    "matrix": (
        lambda one: comm_func.all_to_all_v_c(one, one, (1, 0, 0, 1)),
        TypeError,
        "send_count_matrix must be a l",
    ),
    "matrix of text": (
        lambda one: comm_func.all_to_all_v_c(one, one, ["1"] * 4),
        TypeError,
        "send_count_matrix must be",
    ),
    "no matrix": (lambda one: comm_func.all_to_all_v_c(one, one, [1, 1]), TypeError, "of 4 ints"),
    "negative": (lambda one: comm_func.all_to_all_v_c(one, one, [2, -1, 0, 1]), ValueError, "not negative"),
    "matrix too large": (lambda one: comm_func.all_to_all_v_c(one, one, [2] * 4), ValueError, "send_count_matrix"),
}


@pytest.mark.ranks(2)
def test_wrong_arguments_on_every_rank(rank: int, world_size: int) -> None:
    with world():
        for name, (wrong, kind, words) in WRONG.items():
            with named(name):
                told = assert_refused(kind, words, wrong, np.ones(2, "float32"))
                assert told.startswith("mindspore.communication.comm_func.")
                assert_usable(rank, world_size)


@pytest.mark.ranks(3)
def test_wrong_arguments_on_one_rank(rank: int, world_size: int) -> None:
    """The others, who are waiting for it, are told."""
    with world():
        for name in ("op", "async", "root of text", "no shape", "negative"):
            wrong, kind, _ = WRONG[name]
            with named(name):
                assert_refused_on_one(rank, kind, wrong, comm_func.all_reduce, np.ones(2, "float32"))
                assert_usable(rank, world_size)


RETURNING: dict[str, Callable[[Any], Any]] = {
    "all_reduce": comm_func.all_reduce,
    "all_gather_into_tensor": comm_func.all_gather_into_tensor,
    "reduce_scatter_tensor": comm_func.reduce_scatter_tensor,
    "reduce": lambda tensor: comm_func.reduce(tensor, 0),
    "broadcast": comm_func.broadcast,
    "gather_into_tensor": comm_func.gather_into_tensor,
    "scatter_tensor": comm_func.scatter_tensor,
    "all_to_all_with_output_shape": lambda tensor: comm_func.all_to_all_with_output_shape([(2,), (2,)], [tensor] * 2),
    "all_to_all_single_with_output_shape": lambda tensor: comm_func.all_to_all_single_with_output_shape((2,), tensor),
}


@pytest.mark.ranks(2)
def test_other_frameworks_gradients_are_refused(rank: int, world_size: int) -> None:
    import torch

    tensor = torch.ones(2, requires_grad=True)
    with world():
        for name, call in RETURNING.items():
            with named(name):
                assert_refused(UnsupportedError, r"requires a gradient.*\nPass tensor\.detach", call, tensor)
                call(tensor.detach())


@pytest.mark.ranks(2)
def test_other_frameworks_gradients_are_no_matter_in_place(rank: int, world_size: int) -> None:
    """A parameter is set to what rank 1 has, as torch's own broadcast does it."""
    import torch

    parameter = torch.nn.Parameter(torch.full((2,), rank + 1.0))
    with world():
        dist.broadcast(parameter, 1)
        assert parameter.tolist() == [2.0, 2.0]


@pytest.mark.ranks(2)
def test_ops_communication_can_return(rank: int, world_size: int) -> None:
    with world(), returning():
        tensor = make("mindspore", numbers(rank, (2, 3)))
        total = sum(of_all(2, (2, 3)))
        output, handle = communication.all_reduce(tensor)
        assert handle is None
        check("mindspore", output, total)
        output, handle = ops.all_reduce(tensor, "avg", async_op=True)
        assert handle.wait() is None
        check("mindspore", output, total / 2)
        output, handle = communication.all_gather_into_tensor(None, tensor)
        check("mindspore", output, np.concatenate(of_all(2, (2, 3))))
        output, handle = communication.reduce_scatter_tensor(None, tensor, "avg")
        check("mindspore", output, total[rank : rank + 1] / 2)
        exchanged = np.stack([array[rank] for array in of_all(2, (2, 3))])
        output, handle = communication.all_to_all_single((2, 3), tensor)
        check("mindspore", output, exchanged)
        outputs, handle = communication.all_to_all([(1, 3), tensor[:1]], [tensor[:1], tensor[1:]])
        for source in range(2):
            check("mindspore", outputs[source], exchanged[source : source + 1])
        if rank == 0:
            assert communication.send(tensor, 1) is None
            assert communication.isend(tensor, 1).wait() is None
        else:
            check("mindspore", communication.recv(tensor), numbers(0, (2, 3)))
            output, handle = communication.irecv(tensor)
            handle.wait()
            check("mindspore", output, numbers(0, (2, 3)))
        check("mindspore", tensor, numbers(rank, (2, 3)))
        assert communication.barrier() is None


ONLY_IN_PLACE: dict[str, Any] = {
    "all_gather": lambda: communication.all_gather([], None),
    "all_gather_into_tensor_uneven": lambda: communication.all_gather_into_tensor_uneven(None, None),
    "all_gather_object": lambda: communication.all_gather_object([], None),
    "all_to_all_v_c": lambda: communication.all_to_all_v_c(None, None, []),
    "batch_isend_irecv": lambda: communication.batch_isend_irecv([]),
    "broadcast": lambda: communication.broadcast(None, 0),
    "broadcast_object_list": lambda: communication.broadcast_object_list([]),
    "gather": lambda: communication.gather(None, []),
    "gather_into_tensor": lambda: communication.gather_into_tensor(None, None),
    "gather_object": lambda: communication.gather_object(None),
    "recv_object_list": lambda: communication.recv_object_list([]),
    "reduce": lambda: communication.reduce(None, 0),
    "reduce_scatter": lambda: communication.reduce_scatter(None, []),
    "reduce_scatter_tensor_uneven": lambda: communication.reduce_scatter_tensor_uneven(None, None),
    "scatter": lambda: communication.scatter(None, []),
    "scatter_object_list": lambda: communication.scatter_object_list([], []),
    "scatter_tensor": lambda: communication.scatter_tensor(None, None),
    "send_object_list": lambda: communication.send_object_list([], 0),
}


@pytest.mark.parametrize("name", ONLY_IN_PLACE)
def test_some_functions_work_only_in_place(name: str) -> None:
    with returning(name), pytest.raises(ValueError, match="works only in place") as caught:
        ONLY_IN_PLACE[name]()
    assert isinstance(caught.value, ArgumentError)
    assert str(caught.value).startswith(f"mindspore.ops.communication.{name}: ")
    with pytest.raises((RuntimeError, TypeError)):
        ONLY_IN_PLACE[name]()


@pytest.mark.ranks(2)
def test_functions_are_switched_by_name(rank: int, world_size: int) -> None:
    import shim.frontends.mindspore.mint.distributed as mint

    with world(), returning("all_reduce", "recv"):
        tensor = numbers(rank, 3)
        assert mint.all_reduce(tensor) is None
        check("numpy", tensor, sum(of_all(2, 3)))
        output, _ = communication.all_reduce(tensor)
        check("numpy", output, 2 * sum(of_all(2, 3)))
        communication.set_comm_ops_inplace(True, ("all_reduce",))
        assert communication.all_reduce(tensor) is None
        check("numpy", tensor, 2 * sum(of_all(2, 3)))


def test_the_switch_checks_its_arguments() -> None:
    for wrong in (1, None, "True"):
        with pytest.raises(TypeError, match="is_enable must be a bool"):
            communication.set_comm_ops_inplace(wrong)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="func_list must be a list"):
        communication.set_comm_ops_inplace(True, "all_reduce")
    for unknown in ("all_reduced", "init_process_group", 1):
        with pytest.raises(ValueError, match="func_list must be names of functions"):
            communication.set_comm_ops_inplace(True, [unknown])  # type: ignore[list-item]  # the mistake
