"""Exchanges, messages, objects, barriers and groups do what they do in torch's own gloo; differences are declared."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from test_torch_differential_collectives import BIG_CHECKS, UNEVEN, marked
from torch_beside import GLOO_DTYPES, Case, both, compare, empty, filled, waited


def all_to_all(d: Any, rank: int, n: int, dtype: str = "float32") -> Any:
    outputs = [empty(dtype=dtype) for _ in range(n)]
    return d.all_to_all(outputs, [filled(rank + 2 * place, dtype=dtype) for place in range(n)]), outputs


def uneven(d: Any, rank: int, n: int) -> Any:
    outputs = [empty((rank + 1, 2)) for _ in range(n)]
    return d.all_to_all(outputs, [filled(rank + 2 * place, (place + 1, 2)) for place in range(n)]), outputs


def all_to_all_single(d: Any, rank: int, n: int, dtype: str = "float32", kind: Any = list) -> Any:
    """Rank r sends p + 1 rows to rank p, and receives r + 1 from each."""
    output = empty((n * (rank + 1), 2), dtype)
    into, of = kind([rank + 1] * n), kind([place + 1 for place in range(n)])
    return d.all_to_all_single(output, filled(rank, (sum(of), 2), dtype), into, of), output


ALL_TO_ALL = [
    *(Case(dtype, lambda d, rank, n, dtype=dtype: all_to_all(d, rank, n, dtype)) for dtype in GLOO_DTYPES),
    *(
        Case(f"single {dtype}", lambda d, rank, n, dtype=dtype: all_to_all_single(d, rank, n, dtype))
        for dtype in GLOO_DTYPES
    ),
    Case("tuples of sizes", lambda d, rank, n: all_to_all_single(d, rank, n, kind=tuple)),
    Case(
        "equal parts",
        lambda d, rank, n: (d.all_to_all_single(output := empty((2 * n,)), filled(rank, (2 * n,))), output),
    ),
    Case(
        "async",
        lambda d, rank, n: waited(d.all_to_all_single(empty((n,)), filled(rank, (n,)), async_op=True)),
    ),
    Case(
        "uneven",
        uneven,
        lambda rank, n: [None, [filled(other + 2 * rank, (rank + 1, 2)) for other in range(n)]],
        UNEVEN,
    ),
    Case("empty lists", lambda d, rank, n: d.all_to_all([], []), ValueError, BIG_CHECKS),
    Case("tuple", lambda d, rank, n: d.all_to_all((empty(),) * n, [filled(0)] * n)),
    Case("tensor and list", lambda d, rank, n: d.all_to_all(empty((n, 2)), [filled(0)] * n)),
    Case("None", lambda d, rank, n: d.all_to_all([empty() for _ in range(n)], None)),
    Case("dtypes", lambda d, rank, n: d.all_to_all([empty() for _ in range(n)], [filled(0, dtype="int64")] * n)),
    Case("list in single", lambda d, rank, n: d.all_to_all_single([empty()] * n, filled(0))),
    Case(
        "sum of sizes",
        lambda d, rank, n: d.all_to_all_single(empty((n,)), filled(0, (n,)), [1] * n, [2] * n),
        ValueError,
        BIG_CHECKS,
    ),
    Case(
        "rows that cannot be cut",
        lambda d, rank, n: d.all_to_all_single(empty((n + 1,)), filled(rank, (n + 1,))),
        ValueError,
        "gloo returns memory that nobody has written",
    ),
]


def ring(d: Any, rank: int, n: int, dtype: str = "float32", tag: int = 0) -> Any:
    """Send to the rank after this one and receive from the one before."""
    sending = d.isend(filled(rank, dtype=dtype), (rank + 1) % n, tag=tag)
    work = d.irecv(tensor := empty(dtype=dtype), (rank - 1) % n, tag=tag)
    return waited(work), waited(sending), work._source_rank(), tensor


def pair(send: Any, receive: Any) -> Any:
    """Rank 0 sends and rank 1 receives; the others look on."""

    def call(d: Any, rank: int, n: int) -> Any:
        return send(d) if rank == 0 else receive(d) if rank == 1 else None

    return call


def received(function: str, **source: Any) -> Any:
    def call(d: Any) -> Any:
        tensor = empty()
        returned = getattr(d, function)(tensor, **source)
        return (waited(returned), returned._source_rank(), tensor) if function == "irecv" else (returned, tensor)

    return call


def from_any(d: Any, rank: int, n: int) -> Any:
    """Which message comes first is open: what came is compared in the order of the senders."""
    if rank > 0:
        return d.send(filled(rank), 0, tag=3)
    messages = []
    for _ in range(1, n):
        tensor = empty()
        messages.append((d.recv(tensor, tag=3), tensor.tolist()))
    return sorted(messages)


def batch(d: Any, rank: int, n: int) -> Any:
    tensors = [empty() for _ in range(n)]
    others = [other for other in range(n) if other != rank]
    operations = [d.P2POp(d.isend, filled(rank + other), other, tag=1) for other in others]
    operations += [d.P2POp(d.irecv, tensors[other], group_peer=other, tag=1) for other in others]
    works = d.batch_isend_irecv(operations)
    return [work.wait() for work in works], len(works), tensors


MESSAGES = [
    *(Case(dtype, lambda d, rank, n, dtype=dtype: ring(d, rank, n, dtype)) for dtype in GLOO_DTYPES),
    Case("tags", lambda d, rank, n: ring(d, rank, n, tag=7)),
    Case("send and recv", pair(lambda d: d.send(filled(0), 1), received("recv", src=0))),
    Case("group ranks", pair(lambda d: d.send(filled(0), group_dst=1), received("recv", group_src=0))),
    Case("irecv from any", pair(lambda d: d.send(filled(0), 1, tag=2), received("irecv", tag=2))),
    Case("recv from any", from_any),
    Case("batch", batch),
    Case("send to nobody", lambda d, rank, n: d.send(filled(0))),
    Case("send to two", lambda d, rank, n: d.send(filled(0), 1, group_dst=1)),
    Case("send to oneself", lambda d, rank, n: d.send(filled(0), rank)),
    Case("isend of nothing", lambda d, rank, n: d.isend(None, (rank + 1) % n)),
    Case("isend to nobody", lambda d, rank, n: d.isend(filled(0))),
    Case("tag is text", lambda d, rank, n: d.isend(filled(0), (rank + 1) % n, tag="x")),
    Case("irecv of a list", lambda d, rank, n: d.irecv([empty()], (rank + 1) % n)),
    Case("operation", lambda d, rank, n: d.P2POp(d.isend, filled(0), 1).group_peer),
    Case("operation in text", lambda d, rank, n: d.P2POp("isend", filled(0), 1)),
    Case("operation without a peer", lambda d, rank, n: d.P2POp(d.isend, filled(0))),
    Case("operation with two", lambda d, rank, n: d.P2POp(d.isend, filled(0), 1, group_peer=1)),
    Case("operation on nothing", lambda d, rank, n: d.P2POp(d.isend, 3, 1)),
    Case(
        "operation outside",
        lambda d, rank, n: d.P2POp(d.isend, filled(0), 9),
        ValueError,
        "torch notices when the operation begins",
    ),
    Case(
        "send to oneself in the background",
        lambda d, rank, n: (d.isend(filled(rank), rank), waited(d.irecv(tensor := empty(), rank)), tensor),
        lambda rank, n: ["Work", ["Work", True, True], filled(rank)],
        "torch documents no exception, and gloo has no connection to oneself",
    ),
    Case("empty batch", lambda d, rank, n: d.batch_isend_irecv([])),
    Case("batch in a tuple", lambda d, rank, n: d.batch_isend_irecv(())),
    Case("batch of numbers", lambda d, rank, n: d.batch_isend_irecv([3])),
]


def things(rank: int) -> list[Any]:
    return [{"rank": rank, "data": list(range(100 * rank))}, f"of {rank}"]


def broadcast_objects(**root: Any) -> Any:
    return lambda d, rank, n: (d.broadcast_object_list(items := things(rank), **root), items)


def broadcast_sequence(items: Any) -> Any:
    return lambda d, rank, n: (d.broadcast_object_list(given := [0, 0] if rank else items, 0), given)


def gather_objects(**root: Any) -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        slots = [0] * (n + 1) if rank == root.get("dst", root.get("group_dst", 0)) else None
        return d.gather_object(things(rank), slots, **root), slots

    return call


def scatter_objects(**root: Any) -> Any:
    def call(d: Any, rank: int, n: int) -> Any:
        slots = ["replaced", "kept"]
        return d.scatter_object_list(slots, [things(rank + place) for place in range(n)], **root), slots

    return call


def receive_objects(**options: Any) -> Any:
    return lambda d: (d.recv_object_list(slots := [0, 0], **options), slots)


OBJECTS = [
    Case("all_gather", lambda d, rank, n: (d.all_gather_object(slots := [0] * (n + 1), things(rank)), slots)),
    Case("broadcast", broadcast_objects(src=1)),
    Case("broadcast of the default", broadcast_objects()),
    Case("broadcast of a tuple", broadcast_sequence((1, "of 0"))),
    Case("broadcast of letters", broadcast_sequence("ab")),
    Case("broadcast by group rank", broadcast_objects(group_src=1, device="cpu")),
    Case("gather", gather_objects(dst=1)),
    Case("gather of the default", gather_objects()),
    Case("gather by group rank", gather_objects(group_dst=1)),
    Case("scatter", scatter_objects(src=1)),
    Case("scatter of the default", scatter_objects()),
    Case("scatter by group rank", scatter_objects(group_src=1)),
    Case("send", pair(lambda d: d.send_object_list(things(0), 1), receive_objects(src=0))),
    Case("send a tuple", pair(lambda d: d.send_object_list((1, 2), 1), receive_objects(src=0))),
    Case(
        "send in a batch",
        pair(
            lambda d: d.send_object_list(things(0), group_dst=1, use_batch=True),
            receive_objects(group_src=0, use_batch=True, device="cpu"),
        ),
    ),
    Case("send to oneself", lambda d, rank, n: d.send_object_list([1], rank)),
    Case("send to nobody", lambda d, rank, n: d.send_object_list([1])),
    Case("send nothing", lambda d, rank, n: d.send_object_list([], (rank + 1) % n)),
    Case("gather without slots", lambda d, rank, n: d.gather_object(1, None, rank)),
    Case("gather with slots elsewhere", lambda d, rank, n: d.gather_object(1, [0] * n, (rank + 1) % n)),
    Case("scatter without slots", lambda d, rank, n: d.scatter_object_list([], [1] * n)),
    Case("scatter into a tuple", lambda d, rank, n: d.scatter_object_list((0,), [1] * n)),
    Case("scatter nothing", lambda d, rank, n: d.scatter_object_list([0], None, rank)),
    Case("two sources", broadcast_objects(src=0, group_src=0)),
    Case("slots missing", lambda d, rank, n: d.all_gather_object([0] * (n - 1), 1)),
]


def in_a_block(d: Any, calls: Any, **options: Any) -> Any:
    with d.distributed_c10d._coalescing_manager(**options) as manager:
        returned = [call() for call in calls]
    manager.wait()
    return returned, len(manager.works)


def reduced_in_a_block(d: Any, rank: int, n: int, **options: Any) -> Any:
    tensors = [filled(rank + place) for place in range(3)]
    async_op = bool(options)
    return in_a_block(d, [lambda t=t: d.all_reduce(t, async_op=async_op) for t in tensors], **options), tensors


def gathered_in_a_block(d: Any, rank: int, n: int) -> Any:
    outputs = [empty((2 * n, 3)), empty((2 * n, 3))]
    return in_a_block(d, [lambda o=o: d.all_gather_single(o, filled(rank)) for o in outputs]), outputs


def scattered_in_a_block(d: Any, rank: int, n: int) -> Any:
    outputs = [empty(), empty()]
    return in_a_block(d, [lambda o=o: d.reduce_scatter_single(o, filled(rank, (2 * n, 3))) for o in outputs]), outputs


def several(rank: int, dtype: str = "float32") -> Any:
    return [filled(rank + place, (place + 1,), dtype) for place in range(3)]


def lists(n: int, dtype: str = "float32") -> Any:
    return [[empty((place + 1,), dtype) for place in range(3)] for _ in range(n)]


COALESCED = [
    *(
        Case(
            f"all_reduce {dtype}",
            lambda d, rank, n, dtype=dtype: (d.all_reduce_coalesced(tensors := several(rank, dtype)), tensors),
        )
        for dtype in ("int32", "float32", "float16", "complex64")
    ),
    *(
        Case(
            f"all_gather {dtype}",
            lambda d, rank, n, dtype=dtype: (
                d.all_gather_coalesced(outputs := lists(n, dtype), several(rank, dtype)),
                outputs,
            ),
        )
        for dtype in ("int32", "float32", "float64", "complex64")
    ),
    Case("MAX", lambda d, rank, n: (d.all_reduce_coalesced(tensors := several(rank), d.ReduceOp.MAX), tensors)),
    Case("one tensor", lambda d, rank, n: (d.all_reduce_coalesced(tensor := filled(rank)), tensor)),
    Case("future", lambda d, rank, n: d.all_reduce_coalesced(several(rank), async_op=True)),
    Case("future of lists", lambda d, rank, n: d.all_gather_coalesced(lists(n), several(rank), async_op=True)),
    Case("tuple", lambda d, rank, n: d.all_reduce_coalesced(tuple(several(rank)))),
    Case("dtypes", lambda d, rank, n: d.all_reduce_coalesced([filled(0), filled(0, dtype="int32")])),
    Case("empty", lambda d, rank, n: d.all_reduce_coalesced([]), ValueError, BIG_CHECKS),
    Case("MAX of complex", lambda d, rank, n: d.all_reduce_coalesced(several(rank, "complex64"), d.ReduceOp.MAX)),
    Case("tuple of lists", lambda d, rank, n: d.all_gather_coalesced(tuple(lists(n)), several(rank))),
    Case("tuple of inputs", lambda d, rank, n: d.all_gather_coalesced(lists(n), tuple(several(rank)))),
    Case("no tensors", lambda d, rank, n: d.all_gather_coalesced([[1]] * n, [filled(0)])),
    Case(
        "too few lists", lambda d, rank, n: d.all_gather_coalesced(lists(n - 1), several(rank)), ValueError, BIG_CHECKS
    ),
    Case("block", reduced_in_a_block),
    Case("block in the background", lambda d, rank, n: reduced_in_a_block(d, rank, n, async_ops=True)),
    Case("gathering block", gathered_in_a_block),
    Case("scattering block", scattered_in_a_block),
    Case("device", lambda d, rank, n: in_a_block(d, [], device=filled(0).device)),
    Case("illegal work", lambda d, rank, n: d.distributed_c10d._IllegalWork().wait()),
]


def barriers(d: Any, rank: int, n: int) -> Any:
    return d.barrier(), waited(d.barrier(async_op=True)), d.barrier(timeout=timedelta(seconds=10))


BARRIERS = [
    Case("barrier", barriers),
    Case("monitored", lambda d, rank, n: d.monitored_barrier(timeout=timedelta(seconds=10), wait_all_ranks=True)),
    Case("seconds", lambda d, rank, n: d.monitored_barrier(timeout=10.0)),
    Case("whole seconds", lambda d, rank, n: d.monitored_barrier(timeout=10)),
    Case("text", lambda d, rank, n: d.monitored_barrier(timeout="x")),
]

FAMILIES = {
    "all_to_all": ALL_TO_ALL,
    "messages": MESSAGES,
    "objects": OBJECTS,
    "coalesced": COALESCED,
    "barriers": BARRIERS,
}


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("family", marked(FAMILIES))
def test_exchanges(rank: int, world_size: int, family: str) -> None:
    with both() as theirs:
        compare(FAMILIES[family], theirs)
