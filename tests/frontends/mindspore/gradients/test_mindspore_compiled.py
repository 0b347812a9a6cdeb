"""The primitives in compiled graphs: right or refused, never a gradient of zero without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import COMPILED, COMPILED_DTYPES, check, in_mode, make, numbers, of_all, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import ArgumentError, MismatchError, UnsupportedError
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.communication import comm_func, init, release


class Network(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def __init__(self, primitive: Any) -> None:
        super().__init__()
        self.primitive = primitive

    def construct(self, *tensors: Any) -> Any:
        return self.primitive(*tensors)


class Many(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """Independent collectives of one shape, which would be exchanged for each other if ranks ordered them differently."""

    def __init__(self) -> None:
        super().__init__()
        self.gather = ops.AllGather()
        self.scatter = ops.ReduceScatter()
        self.broadcast = ops.Broadcast(1)

    def construct(self, tensor: Any) -> Any:
        first = self.gather(tensor * 2) * self.gather(tensor * 3)
        second = self.gather(tensor * 5) - self.gather(tensor)
        third = self.broadcast((tensor * 7, tensor * 11))
        return (first * second).sum() + (self.scatter(first) * self.scatter(second)).sum() + (third[0] * third[1]).sum()


class InPlace(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        doubled = tensor * 2
        dist.all_reduce(doubled)
        return doubled.sum()


class Returning(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        return comm_func.all_reduce(tensor * 2)[0].sum()


class Switched(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        doubled = tensor * 2
        ops.all_reduce(doubled)
        return doubled.sum()


class Received(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        return comm_func.recv(tensor).sum()


class Rooted(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        doubled = tensor * 2
        dist.broadcast(doubled, 0)
        return doubled.sum()


class Sent(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        dist.isend(tensor, 1)
        return tensor.sum()


class Batched(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        dist.batch_isend_irecv([dist.P2POp("irecv", tensor, 1)])
        return tensor.sum()


class Exchanged(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        return comm_func.batch_isend_irecv([comm_func.P2POp("irecv", tensor, 1)])[0].sum()


class Objects(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        dist.broadcast_object_list([tensor, tensor])
        return tensor.sum()


class Barrier(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    def construct(self, tensor: Any) -> Any:
        dist.barrier()
        return tensor + 1


@pytest.mark.ranks(2)
def test_the_documented_example(rank: int, world_size: int, tmp_path: Path) -> None:
    from mindspore import Tensor, context, nn

    class Net(nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
        def __init__(self) -> None:
            super().__init__()
            self.allgather = ops.AllGather()

        def construct(self, x: Any) -> Any:
            return self.allgather(x)

    with in_mode(COMPILED, tmp_path):
        context.set_context(mode=context.GRAPH_MODE)
        init()
        try:
            output = Net()(Tensor(np.ones([2, 8]).astype(np.float32)))
            check("mindspore", output, np.ones([4, 8], "float32"))
            assert str(output) == "[" + "\n ".join(["[1. 1. 1. 1. 1. 1. 1. 1.]"] * 4) + "]"
        finally:
            release()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", COMPILED_DTYPES)
def test_every_dtype(rank: int, world_size: int, dtype: str, tmp_path: Path) -> None:
    with world(), in_mode(COMPILED, tmp_path):
        tensor = make("mindspore", numbers(rank, (2, 3), dtype), dtype)
        check("mindspore", Network(ops.AllGather())(tensor), np.concatenate(of_all(2, (2, 3), dtype)), dtype)
        check("mindspore", Network(ops.Broadcast(1))((tensor,))[0], numbers(1, (2, 3), dtype), dtype)
        total = np.sum(of_all(2, (2, 3), dtype), axis=0).astype(numbers(0, 1, dtype).dtype)
        check("mindspore", Network(ops.ReduceScatter())(tensor), total[rank : rank + 1], dtype)
        gathered = np.concatenate(of_all(2, (2, 3), dtype)) if rank == 1 else np.zeros(1, total.dtype)
        check("mindspore", Network(ops.CollectiveGather(1))(tensor), gathered, dtype)


@pytest.mark.ranks(3)
def test_ranks_keep_the_order_of_independent_collectives(rank: int, world_size: int, tmp_path: Path) -> None:
    """What is compiled equals what PyNative mode gives, several times, with its gradient."""
    with world():
        network, tensor = Many(), make("mindspore", numbers(rank, (3, 2)))
        value, gradient = mindspore.value_and_grad(network)(tensor)
        assert np.any(gradient.asnumpy() != 0)
        with in_mode(COMPILED, tmp_path):
            compiled = mindspore.value_and_grad(Many())
            for _ in range(3):
                value_again, gradient_again = compiled(tensor)
                np.testing.assert_allclose(value_again.asnumpy(), value.asnumpy(), rtol=1e-6)
                np.testing.assert_allclose(gradient_again.asnumpy(), gradient.asnumpy(), rtol=1e-6)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("capture", ["ast", "bytecode"])
def test_jit(rank: int, world_size: int, capture: str, tmp_path: Path) -> None:
    with world(), in_mode("PyNative", tmp_path):
        gather, weights = ops.AllGather(), make("mindspore", numbers(rank, (4, 3)))

        @mindspore.jit(capture_mode=capture)  # type: ignore[untyped-decorator]  # mypy does not see MindSpore
        def weighted(tensor: Any) -> Any:
            return (gather(tensor) * weights).sum()

        tensor = make("mindspore", numbers(rank, (2, 3)))
        value = (np.concatenate(of_all(2, (2, 3))) * numbers(rank, (4, 3))).sum()
        assert float(weighted(tensor)) == float(value)
        expected = sum(of_all(2, (4, 3)))[2 * rank : 2 * rank + 2]
        check("mindspore", mindspore.grad(weighted)(tensor), expected)


@pytest.mark.ranks(2)
def test_what_kernels_cannot_take_is_refused(rank: int, world_size: int, tmp_path: Path) -> None:
    with world(), in_mode(COMPILED, tmp_path):
        with pytest.raises(UnsupportedError, match="must not be empty in a compiled graph"):
            Network(ops.AllGather())(make("mindspore", np.zeros((0, 3), "float32")))
        with pytest.raises(ArgumentError, match="must have a dimension 0"):
            Network(ops.AllGather())(make("mindspore", np.zeros((), "float32")))
        with pytest.raises(ArgumentError, match="must have rows for 2 ranks"):
            Network(ops.ReduceScatter())(make("mindspore", np.zeros((3, 3), "float32")))
        network = Network(ops.AllGather())
        network.set_inputs(mindspore.Tensor(shape=[None, 3], dtype=mindspore.float32))
        with pytest.raises(UnsupportedError, match="must have a known shape in a compiled graph"):
            network(make("mindspore", np.zeros((2, 3), "float32")))


@pytest.mark.ranks(2)
def test_errors_keep_their_class(rank: int, world_size: int, tmp_path: Path) -> None:
    with world(), in_mode(COMPILED, tmp_path):
        network = Network(ops.AllGather())
        with pytest.raises(MismatchError, match=r"mindspore\.ops\.AllGather"):
            network(make("mindspore", numbers(rank, (2 + rank, 3)))).asnumpy()
        again = Network(ops.AllGather())(make("mindspore", numbers(rank, (2, 3))))
        check("mindspore", again, np.concatenate(of_all(2, (2, 3))))


@pytest.mark.ranks(2)
@pytest.mark.parametrize(
    "network", [InPlace, Barrier, Returning, Switched, Received, Rooted, Sent, Batched, Exchanged, Objects]
)
def test_functions_cannot_be_compiled(rank: int, world_size: int, network: Any, tmp_path: Path) -> None:
    """MindSpore documents them for PyNative mode; its compiler refuses the `try` that it reads in ``shim/core/calls.py``.

    Without any it would call them as Python, and give a gradient of zero without a word.
    """
    with world(), in_mode(COMPILED, tmp_path):
        tensor = make("mindspore", numbers(rank, (2, 3)))
        with pytest.raises((RuntimeError, TypeError)):  # the latter where torch is loaded
            network()(tensor)
        with pytest.raises((RuntimeError, TypeError)):
            mindspore.grad(network())(tensor)


_TRACED = """
import os, numpy as np, mindspore
import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import UnsupportedError
from shim.frontends.mindspore import ops

dist.init_process_group()
gather = ops.AllGather()

@mindspore.jit(capture_mode="trace")
def primitive(tensor):
    return gather(tensor).sum()

@mindspore.jit(capture_mode="trace")
def function(tensor):
    dist.all_reduce(tensor)
    return tensor

try:
    {name}(mindspore.Tensor(np.ones(2, np.float32)))
except UnsupportedError as error:
    os._exit("cannot be traced" not in str(error))  # MindSpore aborts in an exit with a trace that was not ended
os._exit(3)
"""


@pytest.mark.parametrize("name", ["primitive", "function"])
def test_tracing_is_refused(name: str, tmp_path: Path) -> None:
    """In a process of its own: MindSpore goes on tracing after an exception in what it traces."""
    assert_program_passes(_TRACED.replace("{name}", name), tmp_path)


_EARLY = """
import os, sys
from shim.frontends.mindspore import ops
early = ops.AllGather()
import mindspore, numpy as np
from shim.frontends.mindspore.communication import init
init()

def loss(tensor):
    return early(tensor * 2).sum()

tensor = mindspore.Tensor(np.ones((2, 3), np.float32))
assert np.all(mindspore.grad(loss)(tensor).asnumpy() == 2)
mindspore.set_context(mode=mindspore.GRAPH_MODE)
try:
    mindspore.grad(loss)(tensor)
except Exception:
    os._exit(0)  # a thread of MindSpore's may still drop the graph, which aborts a process whose Python ends meanwhile
sys.exit("compiled")
"""


def test_a_primitive_made_before_mindspore_was_imported_is_not_compiled(tmp_path: Path) -> None:
    """It is a plain object; in PyNative mode it has its gradient, in a compiled graph it must not have a wrong one."""
    assert_program_passes(_EARLY, tmp_path)


def assert_program_passes(program: str, folder: Path) -> None:
    """Run *program* from a file, because MindSpore's compiler reads source files, and see it exit with 0."""
    (folder / "program.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, "program.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


class Linear(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """Independent collectives of one shape, of which neither the results nor their gradients depend on each other."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.sums = [ops.AllReduce(), ops.AllReduce("avg"), ops.AllReduce("max"), ops.AllReduce("prod")]
        self.weights = [float(10 * place + rank + 1) for place in range(4)]

    def construct(self, tensor: Any) -> Any:
        total = tensor.sum()
        for place in range(4):
            total = total + (self.sums[place](tensor + place) * self.weights[place]).sum()
        return total


@pytest.mark.ranks(3)
def test_ranks_keep_the_order_of_independent_gradients(rank: int, world_size: int, tmp_path: Path) -> None:
    """Compiled anew each time: MindSpore orders the first run of a graph in another way than those that follow."""
    with world():
        tensor = make("mindspore", numbers((rank + 1) % 3, (2, 2)))
        expected = mindspore.grad(Linear(rank))(tensor).asnumpy()
        assert np.any(expected[0] != expected[1])
        with in_mode(COMPILED, tmp_path):
            for _ in range(5):
                compiled = mindspore.grad(Linear(rank))
                for _ in range(2):
                    np.testing.assert_allclose(compiled(tensor).asnumpy(), expected, rtol=1e-6)
