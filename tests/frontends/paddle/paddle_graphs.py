"""What the tests of Paddle's static graphs share: two kinds of graph, functions that communicate in them, and what these give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import shim.frontends.paddle_3.distributed as dist


@contextmanager
def static_mode() -> Iterator[Any]:
    import paddle

    paddle.enable_static()
    try:
        yield paddle
    finally:
        paddle.disable_static()


def compiled(function: Callable[..., Any], numbers: Any, runs: int = 1) -> Any:
    """What *function* returns, compiled, when it has run *runs* times with a tensor of *numbers* of its own."""
    import paddle

    graph = paddle.jit.to_static(function, full_graph=True)
    return [_read(graph(paddle.to_tensor(numbers))) for _ in range(runs)][-1]


def partly_compiled(function: Callable[..., Any], numbers: Any, runs: int = 1) -> Any:
    import paddle

    graph = paddle.jit.to_static(function, full_graph=False)
    return [_read(graph(paddle.to_tensor(numbers))) for _ in range(runs)][-1]


def in_program(function: Callable[..., Any], numbers: Any, runs: int = 1) -> Any:
    with static_mode() as paddle:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            value = paddle.static.data("x", numbers.shape, str(numbers.dtype))
            result = function(value)
        executor = paddle.static.Executor(paddle.CPUPlace())
        fetched = result if isinstance(result, list) else [result]
        for _ in range(runs):
            outputs = executor.run(program, feed={"x": numbers}, fetch_list=fetched)
    return [_read(one) for one in outputs] if isinstance(result, list) else _read(outputs[0])


def _read(result: Any) -> Any:
    return [_read(one) for one in result] if isinstance(result, (list, tuple)) else np.asarray(result).tolist()


GRAPHS = [compiled, in_program]


def sum_(x: Any) -> Any:
    dist.all_reduce(x)
    return x * 2 + 1


def maximum_elsewhere(x: Any) -> Any:
    task = dist.all_reduce(x, op=dist.ReduceOp.MAX, sync_op=False)
    task.wait()
    dist.wait(x)
    return x + 0


def average(x: Any) -> Any:
    dist.get_group(0).process_group.all_reduce(x, dist.ReduceOp.AVG, True)
    return x + 0


def copied(x: Any) -> Any:
    dist.broadcast(x, 1)
    return x + 0


def reduced(x: Any) -> Any:
    dist.stream.reduce(x, 1, use_calc_stream=True)
    return x + 0


def gathered(x: Any) -> Any:
    import paddle

    parts: list[Any] = []
    dist.all_gather(parts, x)
    parts.append(x)
    return paddle.concat(parts)


def gathered_at_1(x: Any) -> Any:
    import paddle

    parts: list[Any] = []
    dist.gather(x, parts, 1)
    return paddle.concat(parts) if dist.get_rank() == 1 else x + len(parts)


def own_sum(x: Any) -> Any:
    import paddle

    part = paddle.zeros([1], "float32")
    dist.reduce_scatter(part, [x[:1], x[1:]])
    return part + 0


def scattered(x: Any) -> Any:
    import paddle

    part = paddle.zeros([1], "float32")
    dist.scatter(part, [x[:1] + 0, x[1:] + 0] if dist.get_rank() == 1 else None, 1)
    return part + 0


def exchanged(x: Any) -> Any:
    import paddle

    parts: list[Any] = []
    dist.alltoall(parts, [x[:1] + 0, x[1:] + 0])
    return paddle.concat(parts)


def exchanged_unequally(x: Any) -> Any:
    import paddle

    rank = dist.get_rank()
    output = paddle.zeros([2 if rank else 1], "float32")
    dist.alltoall_single(output, x[: 2 - rank] + 0, in_split_sizes=[1 - rank, 1], out_split_sizes=[1, rank])
    return output + 0


def sent(x: Any) -> Any:
    import paddle

    output = paddle.zeros([2], "float32")
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(output, 1)
    else:
        dist.recv(output, 0)
        dist.send(x, 0)
    return output + 0


def of_objects(x: Any) -> Any:
    dist.all_gather_object([], 1)
    return x


def of_barriers(x: Any) -> Any:
    dist.barrier()
    return x


def of_batches(x: Any) -> Any:
    dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 0)])
    return x


def of_a_message(x: Any) -> Any:
    dist.isend(x, 0)
    return x


def of_a_message_to_come(x: Any) -> Any:
    dist.irecv(x, 0)
    return x


# Of [1, 3] on rank 0 and [2, 5] on rank 1: what each rank gets.
SERVED: dict[Callable[[Any], Any], tuple[list[float], list[float]]] = {
    sum_: ([7, 17], [7, 17]),
    maximum_elsewhere: ([2, 5], [2, 5]),
    average: ([1.5, 4], [1.5, 4]),
    copied: ([2, 5], [2, 5]),
    reduced: ([1, 3], [3, 8]),
    gathered: ([1, 3, 2, 5, 1, 3], [1, 3, 2, 5, 2, 5]),
    gathered_at_1: ([1, 3], [1, 3, 2, 5]),
    own_sum: ([3], [8]),
    scattered: ([2], [5]),
    exchanged: ([1, 2], [3, 5]),
    exchanged_unequally: ([1], [3, 2]),
    sent: ([2, 5], [1, 3]),
}


REFUSED = {
    of_objects: "all_gather_object",
    of_barriers: "barrier",
    of_batches: "batch_isend_irecv",
    of_a_message: "isend",
    of_a_message_to_come: "irecv",
}
