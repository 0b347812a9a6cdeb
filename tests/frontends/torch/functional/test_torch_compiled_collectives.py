"""Functional collectives in graphs of torch.compile, under torch.func's transforms and in traces: the values of the plain calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from rank_numbers import numbers
from torch_world import world

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
from shim.errors import MismatchError

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's compiler has its own, and vmap one for each operator


@contextmanager
def compiling() -> Iterator[Any]:
    """Give torch in a world of its own, whose compiler remembers nothing before or after."""
    with world():
        torch._dynamo.reset()
        yield torch
        torch._dynamo.reset()


def whole(function: Callable[..., Any], backend: str = "aot_eager", **options: Any) -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(function, backend=backend, fullgraph=True, **options)
    return compiled


def matrix(torch: Any, rank: int, world_size: int) -> Any:
    return torch.from_numpy(numbers(rank, (world_size, 2 * world_size)))


def listed(results: Any) -> Any:
    return [listed(one) if isinstance(one, (list, tuple)) else functional.wait_tensor(one).tolist() for one in results]


def everything(x: Any) -> Any:
    """Call every function that may be in a graph."""
    group, size, rows = dist.group.WORLD, x.shape[0], x.shape[1] // x.shape[0]
    shifted = [(rank + 1) % size for rank in range(size)]
    me = dist.get_rank()
    splits = [1 if other == me else 0 for other in range(size)]
    reduced, into, part, exchanged = x * 1, torch.empty(size * size, 2 * size), torch.empty(1, 2 * size), x * 0
    into, part = into.to(x.dtype), part.to(x.dtype)
    parts = [x * 0 for _ in range(size)]
    return [
        functional.all_reduce(x, "AVG", group),
        functional.broadcast(x, size - 1, group),
        functional.all_gather_single(x, 0, group),
        functional.all_gather_tensor(x.t(), -1, group),
        functional.all_gather_single_autograd(x[0, 0], 0, group),
        functional.reduce_scatter_single(x, "sum", 0, group),
        functional.reduce_scatter_tensor(x, "max", 1, group),
        functional.reduce_scatter_single_autograd(x, "product", 1, group),
        functional.all_to_all_single(x, None, None, group),
        functional.all_to_all_single_autograd(x[:1], splits, splits, group),
        functional.permute_tensor(x, shifted, group),
        functional.wait_tensor(x + rows),
        functional.all_reduce_coalesced([x, x + 1], "min", group),
        functional.all_gather_single_coalesced([x, x[0]], group),
        functional.reduce_scatter_tensor_coalesced([x, x.t()], "sum", [0, 1], group),
        functional.all_reduce_inplace(reduced),
        functional.all_gather_tensor_inplace(into, x),
        functional.reduce_scatter_tensor_inplace(part, x),
        functional.all_to_all_inplace(exchanged, x),
        functional.all_gather_inplace(parts, x),
    ]


@pytest.mark.ranks(2, deadline=180)
def test_every_form_in_one_graph(rank: int, world_size: int) -> None:
    with compiling() as torch:
        x = matrix(torch, rank, world_size)
        assert listed(whole(everything)(x)) == listed(everything(x))
        assert x.tolist() == numbers(rank, (world_size, 2 * world_size)).tolist()


@pytest.mark.ranks(3, deadline=180)
def test_groups_by_all_their_names(rank: int, world_size: int) -> None:
    with compiling() as torch:
        pair, x = dist.new_group([2, 0]), torch.from_numpy(numbers(rank, 3))
        if rank != 1:
            total = (torch.from_numpy(numbers(0, 3) + numbers(2, 3)) - 1).tolist()
            function = whole(lambda x, group: functional.all_reduce(x, "sum", group) - 1)
            for group in (pair, pair.group_name, [[0, 2]]):
                assert function(x, group).tolist() == total, group
        own = whole(lambda x: functional.all_reduce(x, "sum", dist.group.WORLD))
        assert own(x).tolist() == sum(numbers(other, 3) for other in range(3)).tolist()


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    **{
        op: lambda x, op=op: functional.all_reduce(x * x, op, dist.group.WORLD)
        for op in ("sum", "avg", "max", "product")
    },
    "broadcast": lambda x: functional.broadcast(x * x, 1, dist.group.WORLD),
    "all_gather": lambda x: functional.all_gather_single(x * x, 1, dist.group.WORLD),
    "reduce_scatter": lambda x: functional.reduce_scatter_single(x * x, "product", 1, dist.group.WORLD),
    "all_to_all": lambda x: functional.all_to_all_single(x * x, None, None, dist.group.WORLD),
    "coalesced": lambda x: functional.all_reduce_coalesced([x * x, x.sin()], "sum", dist.group.WORLD)[1],
}


@pytest.mark.ranks(2, deadline=180)
def test_gradients(rank: int, world_size: int) -> None:
    """Compiled, by torch.func and of second order too: what autograd says of the plain call."""
    with compiling() as torch:
        x = matrix(torch, rank, world_size) / 7
        for name, function in GRADIENTS.items():

            def loss(x: Any, function: Any = function) -> Any:
                return (
                    (function(x) * torch.arange(1.0 + rank, 3.0 + rank, 2 / function(x).numel())[:1].item()).sin().sum()
                )

            def derivatives(loss: Any) -> Any:
                at = x.clone().requires_grad_()
                (first,) = torch.autograd.grad(loss(at), at, create_graph=True)
                return first, torch.autograd.grad(first.sum(), at)[0]

            first, second = derivatives(loss)
            assert torch.equal(torch.func.grad(loss)(x), first), name
            assert torch.equal(torch.func.vjp(loss, x)[1](torch.tensor(1.0, dtype=x.dtype))[0], first), name
            torch.testing.assert_close(
                torch.func.grad(lambda x, loss=loss: torch.func.grad(loss)(x).sum())(x), second, msg=name
            )
        at = x.clone().requires_grad_()
        total = whole(lambda x: sum(function(x).sin().sum() for function in GRADIENTS.values()))(at)
        plain = x.clone().requires_grad_()
        sum(function(plain).sin().sum() for function in GRADIENTS.values()).backward()
        total.backward()
        torch.testing.assert_close(at.grad, plain.grad)


@pytest.mark.ranks(2, deadline=180)
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.nightly)])
def test_a_graph_keeps_every_collective_in_its_place(rank: int, world_size: int, backend: str) -> None:
    """One rank compiles, the other does not: they meet in the program's order, in results that nobody uses too."""

    def step(x: Any) -> Any:
        group = dist.group.WORLD
        large = functional.all_reduce(x.repeat(1000).cos(), "sum", group)
        small = functional.all_reduce(x[:3] * 2, "max", group)
        functional.all_reduce(x[:2], "min", group)
        gathered = functional.all_gather_single(x.repeat(50), 0, group)
        return small.sum() + gathered.sum() * 2 + large.sum()

    with compiling() as torch, torch._inductor.config.patch(force_disable_caches=True, compile_threads=1):
        x = torch.from_numpy(numbers(rank, 4))
        torch.testing.assert_close((whole(step, backend) if rank == 0 else step)(x), step(x))


@pytest.mark.ranks(2, deadline=180)
def test_shapes_that_the_graph_does_not_know(rank: int, world_size: int) -> None:
    with compiling() as torch:
        graphs = []

        def counting(graph: Any, _inputs: Any) -> Any:
            graphs.append(graph)
            return graph.forward

        double = torch.compile(
            lambda x: functional.all_gather_single(x, 0, dist.group.WORLD) * 2,
            backend=counting,
            fullgraph=True,
            dynamic=True,
        )
        for rows in (3, 5, 8):
            wanted = 2 * torch.cat([torch.from_numpy(numbers(other, rows)) for other in range(2)])
            assert double(torch.from_numpy(numbers(rank, rows))).tolist() == wanted.tolist()
        assert len(graphs) == 1

        def exchange(x: Any, sizes: Any) -> Any:
            return functional.all_to_all_single(x, sizes.tolist(), sizes.tolist(), dist.group.WORLD)

        x, sizes = torch.from_numpy(numbers(rank, 4)), torch.tensor([1 + 2 * rank, 3 - 2 * rank])
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            assert torch.equal(whole(exchange)(x, sizes), functional.wait_tensor(exchange(x, sizes)))


@pytest.mark.ranks(2, deadline=180)
def test_traces_and_transforms(rank: int, world_size: int) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    def step(x: Any) -> Any:
        return functional.all_reduce_coalesced([x * 2, x], "sum", dist.group.WORLD)[0] + 1

    with compiling() as torch:
        x = torch.from_numpy(numbers(rank, 4))
        wanted = functional.wait_tensor(step(x))
        assert torch.equal(torch.func.functionalize(step)(x), wanted)
        for mode in ("real", "fake", "symbolic"):
            graph = make_fx(step, tracing_mode=mode)(x)
            assert graph.code.count("torch.ops.shim.all_reduce") == 2
            assert graph.code.count("torch.ops.shim.announce") == 1
            assert torch.equal(graph(x), wanted)
        assert torch.equal(make_fx(torch.func.functionalize(step))(x)(x), wanted)
        rows = torch.func.vmap(lambda row: functional.all_reduce(row, "sum", dist.group.WORLD))(x.view(2, 2))
        assert torch.equal(rows, (wanted - 1).view(2, 2) / 2)
        with torch._subclasses.FakeTensorMode():
            assert functional.all_gather_single(torch.ones(3, 2), 1, dist.group.WORLD).shape == (3, 4)
        assert functional.reduce_scatter_single(torch.ones(4, device="meta"), "sum", 0, dist.group.WORLD).shape == (2,)
        with pytest.raises(NotImplementedError, match="jvp"):  # torch 2.13 returns tangents of zero
            torch.func.jvp(step, (x,), (x,))


@pytest.mark.ranks(2, deadline=180)
def test_what_is_in_flight_enters_a_graph(rank: int, world_size: int) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    with compiling() as torch:
        x = torch.from_numpy(numbers(rank, 4)).requires_grad_()
        wanted = sum(torch.from_numpy(numbers(other, 4)) for other in range(2))
        add = whole(lambda y: functional.wait_tensor(y) * y)
        add(functional.all_reduce(x, "sum", dist.group.WORLD)).sum().backward()
        assert torch.equal(x.grad, 4 * wanted)
        graph = make_fx(lambda y: y + 1, tracing_mode="fake")
        assert torch.equal(graph(functional.all_reduce(x, "sum", dist.group.WORLD))(wanted), wanted + 1)


@pytest.mark.ranks(2, deadline=180)
def test_graphs_end_at_what_cannot_be_in_them(rank: int, world_size: int) -> None:
    from torch.utils.checkpoint import checkpoint

    def step(x: Any) -> Any:
        group, y = dist.group.WORLD, x * 2
        dist.all_reduce(y)
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        functional.isend_inplace(functional.all_reduce(y, "max", group) - rank, 1 - rank)
        got = functional.wait_tensor(functional.irecv_inplace(y * 0, 1 - rank))
        return got + functional.broadcast(y, 1, group)

    def received_first(x: Any) -> Any:
        """Every rank begins to receive before it sends: nothing may wait for what is received in between."""
        got = functional.irecv_inplace(x * 0, 1 - rank)
        functional.wait_tensor(functional.isend_inplace(x * 2, 1 - rank))
        return got + 1

    def saved(x: Any) -> Any:
        return checkpoint(lambda x: functional.all_reduce(x * x, "sum", dist.group.WORLD).sin(), x, use_reentrant=False)

    with compiling() as torch:
        x = torch.from_numpy(numbers(rank, 4))
        assert torch.equal(torch.compile(step, backend="aot_eager")(x), step(x))
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"with fullgraph=True call the functional collectives"):
            torch.compile(step, backend="eager", fullgraph=True)(x)
        compiled = torch.compile(received_first, backend="aot_eager")
        for way in (received_first, compiled, compiled):  # whose second call goes through the guards alone
            assert torch.equal(way(x), 2 * torch.from_numpy(numbers(1 - rank, 4)) + 1)
        found = []
        for way in (saved, torch.compile(saved, backend="aot_eager")):
            at = x.clone().requires_grad_()
            way(at).sum().backward()
            found.append(at.grad)
        assert torch.equal(*found)


@pytest.mark.ranks(2, deadline=180)
def test_mistakes_are_told_as_without_a_compiler(rank: int, world_size: int) -> None:
    mistakes: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
        "reduceOp must be one of": (RuntimeError, lambda x: functional.all_reduce(x, "summ", dist.group.WORLD)),
        "gather_dim must be in": (IndexError, lambda x: functional.all_gather_single(x, 3, dist.group.WORLD)),
        "a multiple of 2": (
            AssertionError,
            lambda x: functional.reduce_scatter_single(x[:3], "sum", 0, dist.group.WORLD),
        ),
        "the name of a process group": (RuntimeError, lambda x: functional.all_reduce(x, "sum", "none")),
        "must add up": (ValueError, lambda x: functional.all_to_all_single(x, [1, 1], [1, 1], dist.group.WORLD)),
        "disagree on the shape": (
            MismatchError,
            lambda x: functional.all_reduce(x[: 2 + rank], "sum", dist.group.WORLD),
        ),
    }
    with compiling() as torch:
        x = torch.from_numpy(numbers(rank, 4))
        for text, (kind, function) in mistakes.items():
            with pytest.raises(kind, match=text):
                torch.compile(function, backend="aot_eager")(x)
