"""The collectives give, write, warn of and raise what torch's own gloo does; intended differences are declared."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_beside import GLOO_DTYPES, Case, both, compare, empty, filled, waited
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError

BIG_CHECKS = "torch leaves it to gloo, which raises RuntimeError; here every wrong argument is a ValueError too"
UNEVEN = "torch documents unequal sizes, which gloo refuses"
DTYPES = "gloo does not know this dtype"
SHARED = "gloo writes the one element as often as it occurs; here an output's elements have each their memory"
REDUCE_OPS = ("SUM", "PRODUCT", "MIN", "MAX")
BIT_OPS = ("BAND", "BOR", "BXOR")


def all_reduce(dtype: str, op: str) -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        tensor = filled(rank, dtype=dtype)
        return d.all_reduce(tensor, getattr(d.ReduceOp, op)), tensor

    return call


def total(dtype: str, shape: Any = (2, 3)) -> Any:
    return lambda rank, n: [None, sum((filled(other, shape, dtype) for other in range(1, n)), filled(0, shape, dtype))]


ALL_REDUCE = [
    *(Case(f"SUM {dtype}", all_reduce(dtype, "SUM")) for dtype in GLOO_DTYPES),
    *(
        Case(f"{op} {dtype}", all_reduce(dtype, op))
        for op in REDUCE_OPS[1:]
        for dtype in ("int32", "float16", "float64")
    ),
    *(Case(f"{op} {dtype}", all_reduce(dtype, op)) for op in BIT_OPS for dtype in ("uint8", "int64")),
    Case("AVG", all_reduce("float64", "AVG")),
    *(Case(f"{op} of complex", all_reduce("complex64", op)) for op in ("MAX", "MIN", "PRODUCT", *BIT_OPS)),
    Case("MAX of bool", all_reduce("bool", "MAX")),
    Case("int16", all_reduce("int16", "SUM"), total("int16"), DTYPES),
    Case("AVG of integers", all_reduce("int32", "AVG"), ValueError, BIG_CHECKS),
    Case("bits of floats", all_reduce("float32", "BAND"), ValueError, BIG_CHECKS),
    Case("async", lambda d, rank, n: waited(d.all_reduce(filled(rank), async_op=True))),
    Case("result", lambda d, rank, n: (work := d.all_reduce(filled(rank), async_op=True)).wait() and work.result()),
    Case("no elements", lambda d, rank, n: d.all_reduce(empty((0, 2)))),
    Case("0-d", lambda d, rank, n: (d.all_reduce(tensor := filled(rank, ())), tensor)),
    Case("transposed", lambda d, rank, n: (d.all_reduce(tensor := filled(rank).t()), tensor)),
    Case("op is text", lambda d, rank, n: d.all_reduce(filled(rank), "sum")),
    Case("op is a number", lambda d, rank, n: d.all_reduce(filled(rank), 0)),
    Case("expanded", lambda d, rank, n: d.all_reduce(filled(rank, (1,)).expand(4)), TypeError, SHARED),
    Case("list", lambda d, rank, n: d.all_reduce([filled(rank)])),
    Case(
        "every second",
        lambda d, rank, n: (d.all_reduce((tensor := filled(rank, (4,)))[::2]), tensor),
        lambda rank, n: [None, strided_sum(rank, n)],
        "gloo reduces the memory between the elements instead of them",
    ),
]


def strided_sum(rank: int, n: int) -> Any:
    tensor = filled(rank, (4,))
    tensor[::2] = sum(filled(other, (4,))[::2] for other in range(n))
    return tensor


def broadcast(dtype: str, **root: int) -> Any:
    return lambda d, rank, n: (d.broadcast(tensor := filled(rank, dtype=dtype), **root), tensor)


BROADCAST = [
    *(Case(dtype, broadcast(dtype, src=1)) for dtype in GLOO_DTYPES),
    Case("group_src", broadcast("float32", group_src=0)),
    Case("async", lambda d, rank, n: waited(d.broadcast(filled(rank), 0, async_op=True))),
    Case("no source", broadcast("float32")),
    Case("two sources", broadcast("float32", src=0, group_src=0)),
    Case("outside", broadcast("float32", src=9), ValueError, BIG_CHECKS),
    Case("group_src outside", broadcast("float32", group_src=9), ValueError, BIG_CHECKS),
    Case("source is text", lambda d, rank, n: d.broadcast(filled(rank), "0")),
    Case("number", lambda d, rank, n: d.broadcast(3, 0)),
]


def reduce(dtype: str, op: str = "SUM", **root: int) -> Any:
    """The others' tensors are gloo's scratch memory, and left alone here."""

    def call(d: Any, rank: int, n: int) -> Any:
        tensor = filled(rank, dtype=dtype)
        returned = d.reduce(tensor, op=getattr(d.ReduceOp, op), **root)
        return returned, tensor if rank == 1 else None

    return call


REDUCE = [
    *(Case(dtype, reduce(dtype, dst=1)) for dtype in GLOO_DTYPES if not dtype.startswith("complex")),
    *(Case(op, reduce("float32", op, group_dst=1)) for op in REDUCE_OPS),
    *(Case(op, reduce("int32", op, dst=1)) for op in BIT_OPS),
    Case("AVG", reduce("float32", "AVG", dst=1)),
    Case("async", lambda d, rank, n: waited(d.reduce(filled(rank), 0, async_op=True))),
    Case("no destination", reduce("float32")),
    Case("two destinations", reduce("float32", dst=0, group_dst=0)),
    Case("outside", reduce("float32", dst=9), ValueError, BIG_CHECKS),
    Case("op is text", lambda d, rank, n: d.reduce(filled(rank), 0, "sum")),
    Case("destination is text", lambda d, rank, n: d.reduce(filled(rank), "0")),
    Case("list", lambda d, rank, n: d.reduce([filled(rank)], 0)),
]


def all_gather(dtype: str) -> Any:
    return lambda d, rank, n: (
        d.all_gather(outputs := [empty(dtype=dtype) for _ in range(n)], filled(rank, dtype=dtype)),
        outputs,
    )


ALL_GATHER = [
    *(Case(dtype, all_gather(dtype)) for dtype in GLOO_DTYPES),
    Case("int16", all_gather("int16"), lambda rank, n: [None, [filled(o, dtype="int16") for o in range(n)]], DTYPES),
    Case("async", lambda d, rank, n: waited(d.all_gather([empty() for _ in range(n)], filled(rank), async_op=True))),
    Case("empty list", lambda d, rank, n: d.all_gather([], filled(rank)), ValueError, BIG_CHECKS),
    Case("too short", lambda d, rank, n: d.all_gather([empty()], filled(rank)), ValueError, BIG_CHECKS),
    Case("tuple", lambda d, rank, n: d.all_gather((empty(),) * n, filled(rank))),
    Case("numbers", lambda d, rank, n: d.all_gather([1] * n, filled(rank))),
    Case("dtypes", lambda d, rank, n: d.all_gather([empty() for _ in range(n)], filled(rank, dtype="int32"))),
    Case(
        "unequal",
        lambda d, rank, n: (
            d.all_gather(outputs := [empty((other + 1,)) for other in range(n)], filled(rank, (rank + 1,))),
            outputs,
        ),
        lambda rank, n: [None, [filled(other, (other + 1,)) for other in range(n)]],
        UNEVEN,
    ),
    Case(
        "one tensor n times",
        lambda d, rank, n: d.all_gather([empty()] * n, filled(rank)),
        ValueError,
        "gloo writes all ranks' tensors into it, one over the other",
    ),
    Case(
        "strided outputs",
        lambda d, rank, n: (d.all_gather([empty((n, 4))[o, ::2] for o in range(n)], filled(rank, (2,))), 1),
    ),
]


def single(name: str, dtype: str = "float32", shape: Any = None) -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        output = empty(shape(n) if shape else (2 * n, 3), dtype)
        function = getattr(d, name)
        return function(output, filled(rank, dtype=dtype)), output

    return call


def stacked(rank: int, n: int) -> Any:
    return [None, torch.stack([filled(other) for other in range(n)])]


ALL_GATHER_SINGLE = [
    *(Case(dtype, single("all_gather_single", dtype)) for dtype in GLOO_DTYPES),
    Case("old name", single("all_gather_into_tensor")),
    Case("older name", single("_all_gather_base")),
    Case("stacked", single("all_gather_single", shape=lambda n: (n, 2, 3)), stacked, "documented, gloo refuses it"),
    Case("too small", single("all_gather_single", shape=lambda n: (n, 3)), ValueError, BIG_CHECKS),
    Case("list", lambda d, rank, n: d.all_gather_single([empty() for _ in range(n)], filled(rank))),
    Case("async", lambda d, rank, n: waited(d.all_gather_single(empty((2 * n, 3)), filled(rank), async_op=True))),
]


def gather(dtype: str, **root: int) -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        at = root.get("dst", root.get("group_dst", 0))
        outputs = [empty(dtype=dtype) for _ in range(n)] if rank == at else None
        return d.gather(filled(rank, dtype=dtype), outputs, **root), outputs

    return call


def gathered(dtype: str, root: int) -> Any:
    return lambda rank, n: [None, [filled(other, dtype=dtype) for other in range(n)] if rank == root else None]


GATHER = [
    *(Case(dtype, gather(dtype, dst=1)) for dtype in GLOO_DTYPES if not dtype.startswith("complex")),
    *(
        Case(dtype, gather(dtype, dst=1), gathered(dtype, 1), "gloo gathers no complex numbers, and scatters them")
        for dtype in ("complex64", "complex128")
    ),
    Case("group_dst", gather("float32", group_dst=1)),
    Case("default", gather("float32")),
    Case("two destinations", gather("float32", dst=0, group_dst=0)),
    Case("no list", lambda d, rank, n: d.gather(filled(rank), None, rank)),
    Case("list elsewhere", lambda d, rank, n: d.gather(filled(rank), [empty() for _ in range(n)], (rank + 1) % n)),
    Case("tuple", lambda d, rank, n: d.gather(filled(rank), (empty(),) * n, rank)),
]


def scatter(dtype: str, **root: int) -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        at = root.get("src", root.get("group_src", 0))
        inputs = [filled(place + 4, dtype=dtype) for place in range(n)] if rank == at else None
        output = empty(dtype=dtype)
        return d.scatter(output, inputs, **root), output

    return call


SCATTER = [
    *(Case(dtype, scatter(dtype, src=1)) for dtype in GLOO_DTYPES),
    Case("group_src", scatter("float32", group_src=1)),
    Case("default", scatter("float32")),
    Case("two sources", scatter("float32", src=0, group_src=0)),
    Case("no list", lambda d, rank, n: d.scatter(empty(), None, rank)),
    Case("list elsewhere", lambda d, rank, n: d.scatter(empty(), [filled(0)] * n, (rank + 1) % n)),
]


def reduce_scatter(dtype: str, op: str = "SUM") -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        output = empty(dtype=dtype)
        inputs = [filled(rank + 2 * place, dtype=dtype) for place in range(n)]
        return d.reduce_scatter(output, inputs, getattr(d.ReduceOp, op)), output, inputs

    return call


def reduce_scatter_single(name: str, dtype: str = "float32") -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        output = empty(dtype=dtype)
        return getattr(d, name)(output, filled(rank, (2 * n, 3), dtype)), output

    return call


REDUCE_SCATTER = [
    *(Case(dtype, reduce_scatter(dtype)) for dtype in GLOO_DTYPES if not dtype.startswith("complex")),
    *(Case(op, reduce_scatter("float32", op)) for op in (*REDUCE_OPS, "AVG")),
    *(Case(op, reduce_scatter("int32", op)) for op in BIT_OPS),
    *(
        Case(f"single {dtype}", reduce_scatter_single("reduce_scatter_single", dtype))
        for dtype in GLOO_DTYPES
        if not dtype.startswith("complex")
    ),
    Case("old name", reduce_scatter_single("reduce_scatter_tensor")),
    Case("older name", reduce_scatter_single("_reduce_scatter_base")),
    Case(
        "async",
        lambda d, rank, n: waited(d.reduce_scatter(empty(), [filled(rank) for _ in range(n)], async_op=True))[:2],
    ),
    Case("too short", lambda d, rank, n: d.reduce_scatter(empty(), [filled(0)]), ValueError, BIG_CHECKS),
    Case("tuple", lambda d, rank, n: d.reduce_scatter(empty(), (filled(0),) * n)),
    Case("list for the output", lambda d, rank, n: d.reduce_scatter([empty()], [filled(0)] * n)),
    Case("dtypes", lambda d, rank, n: d.reduce_scatter(empty(), [filled(0, dtype="int32")] * n)),
    Case("sizes", lambda d, rank, n: d.reduce_scatter(empty(), [filled(0, (3, 3))] * n), ValueError, BIG_CHECKS),
    Case("op is text", lambda d, rank, n: d.reduce_scatter(empty(), [filled(0)] * n, "sum")),
    Case("one input", lambda d, rank, n: d.reduce_scatter(empty(), filled(0))),
]

FAMILIES = {
    "all_reduce": ALL_REDUCE,
    "broadcast": BROADCAST,
    "reduce": REDUCE,
    "all_gather": ALL_GATHER,
    "all_gather_single": ALL_GATHER_SINGLE,
    "gather": GATHER,
    "scatter": SCATTER,
    "reduce_scatter": REDUCE_SCATTER,
}


def marked(families: dict[str, list[Case]]) -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.differential("torch", calls=len(cases)), id=name)
        for name, cases in families.items()
    ]


@pytest.mark.ranks(2)
def test_only_what_is_written_must_have_memory_for_each_element(rank: int) -> None:
    def expanded_on(wanted: int) -> Any:
        tensor = filled(rank, (1,)).expand(4)
        return tensor if rank == wanted else tensor.clone()

    with world():
        dist.broadcast(expanded_on(0), 0)
        dist.reduce(expanded_on(1), 0)
        for call in (dist.broadcast, dist.reduce):
            written = int(call is dist.broadcast)
            with pytest.raises(TypeError if rank == written else MismatchError):
                call(expanded_on(written), 0)


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("family", marked(FAMILIES))
def test_collectives(rank: int, world_size: int, family: str) -> None:
    with both() as theirs:
        compare(FAMILIES[family], theirs)
