"""Collectives in Paddle's static graphs do what they do outside, in the order of the program, or say that they cannot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paddle_graphs import (
    GRAPHS,
    REFUSED,
    SERVED,
    compiled,
    gathered,
    of_barriers,
    partly_compiled,
    sent,
    static_mode,
    sum_,
)
from paddle_world import world
from preloaded_programs import run_python

import shim.frontends.paddle_3.distributed as dist
from shim.errors import ArgumentError, StateError, UnsupportedError

pytestmark = [
    pytest.mark.filterwarnings("ignore:No ccache found:UserWarning"),  # of paddle, when it is imported
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of paddle's compilers
    pytest.mark.filterwarnings("ignore::UserWarning:paddle"),
]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("function", SERVED, ids=lambda one: one.__name__)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda one: one.__name__)
def test_graphs_communicate(graph: Any, function: Any, rank: int, world_size: int) -> None:
    with world():
        numbers = np.array([[1, 3], [2, 5]][rank], "float32")
        assert graph(function, numbers, runs=2) == SERVED[function][rank]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("function", [gathered, of_barriers, sent], ids=lambda one: one.__name__)
def test_the_compiler_of_bytecode_communicates_between_its_graphs(function: Any, rank: int, world_size: int) -> None:
    with world():
        numbers = np.array([[1, 3], [2, 5]][rank], "float32")
        expected = SERVED[function][rank] if function in SERVED else numbers.tolist()
        assert partly_compiled(function, numbers, runs=2) == expected


@pytest.mark.ranks(2)
def test_the_argument_is_written(rank: int, world_size: int) -> None:
    import paddle

    with world():
        argument = paddle.to_tensor([1.0 + rank])
        result = paddle.jit.to_static(sum_, full_graph=True)(argument)
        assert (argument.tolist(), result.tolist()) == ([3.0], [7.0])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda one: one.__name__)
def test_the_order_is_the_programs(graph: Any, rank: int, world_size: int) -> None:
    """Eight collectives that know nothing of each other, of values that take the ranks long in opposite orders."""

    def eight(x: Any) -> Any:
        values = [_late(number + 1.0 + rank * (number + 1), number if rank == 1 else 7 - number) for number in range(8)]
        for number, value in enumerate(values):
            dist.all_reduce(value, op=(dist.ReduceOp.SUM, dist.ReduceOp.MAX)[number % 2])
        return [value + 0 * x for value in values]

    with world():
        expected = [[float((n + 1) * (6, 3)[n % 2])] for n in range(8)]
        assert graph(eight, np.array([1 + rank], "float32"), runs=3) == expected


def _late(number: float, how_much: int) -> Any:
    """Return a value that hangs on no other: Paddle's executor begins it on a thread of its own."""
    import paddle

    value = paddle.full([1], number, "float32")
    for _ in range(20 * how_much):
        value = value * 1
    return value


@pytest.mark.ranks(2)
def test_branches_and_loops_keep_the_order(rank: int, world_size: int) -> None:
    import paddle

    def f(x: Any) -> Any:
        other = _late(10.0 + 10 * rank, rank)
        x = x + _late(0.0, 1 - rank)
        i = paddle.zeros([1], "int32")
        while i < 3:
            dist.all_reduce(x)
            i = i + 1
        dist.broadcast(other, 1)
        if x.sum() > 0:
            dist.all_reduce(other, op=dist.ReduceOp.MAX)
        else:
            dist.broadcast(x, 0)
        last = x * 0 + dist.get_rank()
        dist.all_reduce(last)
        return [x + 0, other, last]

    with world():
        assert compiled(f, np.array([1.0 + rank], "float32"), runs=6) == [[12.0], [20.0], [1.0]]
        assert compiled(f, np.array([-1.0 - rank], "float32")) == [[-12.0], [20.0], [1.0]]


@pytest.mark.ranks(2)
def test_the_gradient_is_as_outside(rank: int, world_size: int) -> None:
    """Paddle's collectives have none, in graphs and outside: it is that of the value before."""
    import paddle

    def f(x: Any) -> Any:
        square = x * x
        before = square * 1
        dist.all_reduce(square)
        parts: list[Any] = []
        dist.all_gather(parts, x)
        return (square * 3 + before * parts[1]).sum()

    with world():
        for function in (f, paddle.jit.to_static(f, full_graph=True)):
            x = paddle.to_tensor([1.0 + rank], stop_gradient=False)
            result = function(x)
            result.backward()
            assert float(result) == 15 + 2 * (1 + rank) ** 2
            assert x.grad.tolist() == [2 * (1 + rank) * (3 + 2)]


@pytest.mark.ranks(2)
def test_a_program_trains(rank: int, world_size: int) -> None:
    with world(), static_mode() as paddle:
        program, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(program, startup):
            x = paddle.static.data("x", [None, 1], "float32")
            start = paddle.nn.initializer.Constant(2.0)
            weight = paddle.create_parameter([1], "float32", default_initializer=start)
            optimizer = paddle.optimizer.SGD(0.5)
            pairs = optimizer.backward((x * weight).mean())
            for _, gradient in pairs:
                dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
            optimizer.apply_gradients(pairs)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        for step in range(1, 4):
            [value] = executor.run(program, feed={"x": np.array([[1 + 2 * rank]], "float32")}, fetch_list=[weight])
            assert value.tolist() == [2 - step]  # the average of 1 and 3, times 0.5


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "bfloat16", "float64"])
def test_dtypes_and_shapes_that_are_not_known(dtype: str, rank: int, world_size: int) -> None:
    import paddle

    def f(x: Any) -> Any:
        dist.all_reduce(x)
        return x

    with world():
        graph = paddle.jit.to_static(f, full_graph=True, input_spec=[paddle.static.InputSpec([None, 2], dtype)])
        for rows in (1, 3):
            result = graph(paddle.full([rows, 2], 1 + rank).astype(dtype))
            assert result.astype("int64").tolist() == [[1 if dtype == "bool" else 3] * 2] * rows


@pytest.mark.ranks(3)
def test_a_group_and_those_outside(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([0, 2])

        def f(x: Any) -> Any:
            dist.all_reduce(x, group=group)
            return x + 0

        if rank != 1:
            assert compiled(f, np.array([1.0 + rank], "float32")) == [4.0]


@contextmanager
def _printed(path: Path) -> Iterator[Path]:
    """Give the file to which this process's standard error goes meanwhile."""
    before = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield path
    finally:
        os.dup2(before, 2)
        os.close(before)


@pytest.mark.ranks(2)
def test_ranks_that_disagree_are_all_told(rank: int, world_size: int, tmp_path: Path) -> None:
    """Paddle prints what an operator of a graph raises, and raises a SystemError that names the operator."""
    with world():
        with _printed(tmp_path / "told") as printed, pytest.raises(SystemError, match="paddle_distributed_all_reduce"):
            compiled(sum_, np.ones(2 + rank, "float32"))
        told = printed.read_text()
        assert "the ranks disagree on the shape" in told
        assert "They differ: [2] on rank 0, [3] on rank 1." in told
        assert compiled(sum_, np.ones(2, "float32")) == [5.0, 5.0]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("function", REFUSED, ids=lambda one: one.__name__)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda one: one.__name__)
def test_what_is_not_served_says_so(graph: Any, function: Any, rank: int, world_size: int) -> None:
    told = rf"paddle\.distributed\.{REFUSED[function]}: cannot be a part of a static graph of paddle's\nCall it outside"
    with world(), pytest.raises(UnsupportedError, match=told):
        graph(function, np.ones(2, "float32"))


@pytest.mark.ranks(1)
def test_mistakes_are_told_when_the_graph_is_made() -> None:
    def wrong_op(x: Any) -> Any:
        dist.all_reduce(x, op=9)

    with pytest.raises(StateError, match="the global group is not initialised"):
        compiled(sum_, np.ones(2, "float32"))
    with world(), pytest.raises(ArgumentError, match="op must be one of paddle's ReduceOp"):
        compiled(wrong_op, np.ones(2, "float32"))


@pytest.mark.ranks(1)
def test_what_paddle_would_leave_out_of_a_file_is_refused(tmp_path: Path) -> None:
    import paddle

    class Layer(paddle.nn.Layer):  # type: ignore[misc]  # mypy does not see paddle
        def forward(self, x: Any) -> Any:
            y = x * 1
            dist.all_reduce(y)
            return y

    with world():
        layer = paddle.jit.to_static(
            Layer(), full_graph=True, input_spec=[paddle.static.InputSpec([2], "float32", name="x")]
        )
        assert layer(paddle.ones([2])).tolist() == [1.0, 1.0]
        with pytest.raises(UnsupportedError, match="all_reduce: cannot be saved\n"):
            paddle.jit.save(layer, str(tmp_path / "layer"))


@pytest.mark.ranks(1)
def test_old_graphs_are_refused() -> None:
    with world(), static_mode() as paddle, paddle.pir_utils.OldIrGuard():
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            value = paddle.static.data("x", [2], "float32")
            with pytest.raises(UnsupportedError, match=r"It can in graphs of Paddle 3\.3"):
                dist.all_reduce(value)


PROGRAM = """
import numpy as np
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
rank = dist.get_rank()

@paddle.jit.to_static(full_graph=True)
def f(x):
    dist.all_reduce(x)
    return x * 2 + 1

told = [f(paddle.to_tensor([1.0 + rank] * 2)).tolist()]
paddle.enable_static()
x = paddle.static.data("x", [2], "float32")
dist.all_reduce(x)
executor = paddle.static.Executor(paddle.CPUPlace())
told += executor.run(feed={"x": np.array([1 + rank] * 2, "float32")}, fetch_list=[x])
print(*[list(map(int, one)) for one in told])
"""


def test_programs_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_python("-m", "shim", "run", "-n", "2", "--as-installed", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[7, 7] [3, 3]") == 2, done.stdout + done.stderr
