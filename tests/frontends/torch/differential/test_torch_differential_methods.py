"""ProcessGroup's methods, works, subgroups and collective_utils do what they do in torch itself; differences are declared."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any

import pytest
from test_torch_differential_collectives import BIG_CHECKS, marked
from torch_beside import Case, both, compare, empty, filled, waited

SOON = timedelta(seconds=10)
CPP = "torch's dispatcher raises NotImplementedError; here every wrong argument is a ValueError or TypeError"


def options(d: Any, name: str, **fields: Any) -> Any:
    made = getattr(d.distributed_c10d, name)()
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def on_tensor(call: Any) -> Any:
    """Compare what ``call(group, tensor)`` does to *tensor*."""
    return lambda d, rank, n: (waited(call(d, d.group.WORLD, tensor := filled(rank))), tensor)


def on_outputs(call: Any) -> Any:
    return lambda d, rank, n: (
        waited(call(d, d.group.WORLD, outputs := [empty() for _ in range(n)], filled(rank))),
        outputs,
    )


def on_whole(call: Any, gathers: bool) -> Any:
    """One side is as long as all ranks' parts together."""

    def made(d: Any, rank: int, n: int) -> Any:
        output = empty((2 * n, 3) if gathers else (2, 3))
        work = call(d, d.group.WORLD, output, filled(rank, (2, 3) if gathers else (2 * n, 3)))
        return work.wait(), output

    return made


def gather(d: Any, rank: int, n: int, by_root: bool) -> Any:
    outputs = [empty() for _ in range(n)] if rank == 1 else []
    group = d.group.WORLD
    if by_root:
        work = group.gather(outputs, filled(rank), 1)
    else:
        work = group.gather([outputs] if outputs else [], [filled(rank)], options(d, "GatherOptions", rootRank=1))
    return work.wait(), outputs


def scatter(d: Any, rank: int, n: int, by_root: bool) -> Any:
    inputs, output = [filled(place) for place in range(n)] if rank == 1 else [], empty()
    group = d.group.WORLD
    if by_root:
        work = group.scatter(output, inputs, 1, SOON)
    else:
        work = group.scatter([output], [inputs] if inputs else [], options(d, "ScatterOptions", rootRank=1))
    return work.wait(), output


def reduce(d: Any, rank: int, n: int, by_root: bool) -> Any:
    tensor, group = filled(rank), d.group.WORLD
    if by_root:
        work = group.reduce(tensor, 1, d.ReduceOp.MAX)
    else:
        work = group.reduce([tensor], options(d, "ReduceOptions", rootRank=1, reduceOp=d.ReduceOp.MAX))
    return work.wait(), tensor if rank == 1 else None


def reduce_scatter(d: Any, rank: int, n: int, by_op: bool) -> Any:
    inputs, output, group = [filled(rank + place) for place in range(n)], empty(), d.group.WORLD
    work = group.reduce_scatter(output, inputs, d.ReduceOp.MAX) if by_op else group.reduce_scatter([output], [inputs])
    return work.wait(), output


def exchange(d: Any, rank: int, n: int, name: str, **last: Any) -> Any:
    output = empty((n * (rank + 1), 2))
    of = [place + 1 for place in range(n)]
    call = getattr(d.group.WORLD, name)
    work = call(output, filled(rank, (sum(of), 2)), [rank + 1] * n, of, **last)
    return work.wait(), output


def send(d: Any, rank: int, n: int, from_any: bool) -> Any:
    group = d.group.WORLD
    if rank > 1:
        return None
    if rank == 0:
        return group.send([filled(0)], 1, 5).wait()
    work = group.recv_anysource([tensor := empty()], 5) if from_any else group.recv([tensor := empty()], 0, 5)
    return work.wait(), work._source_rank(), tensor


METHODS = [
    Case("allreduce", on_tensor(lambda d, g, t: g.allreduce([t]))),
    Case(
        "allreduce with options",
        on_tensor(lambda d, g, t: g.allreduce([t], options(d, "AllreduceOptions", reduceOp=d.ReduceOp.MAX))),
    ),
    Case("allreduce with an op", on_tensor(lambda d, g, t: g.allreduce([t], d.ReduceOp.MIN, SOON))),
    Case("allreduce of a tensor", on_tensor(lambda d, g, t: g.allreduce(t, op=d.ReduceOp.PRODUCT))),
    Case("allreduce of a tuple", on_tensor(lambda d, g, t: g.allreduce((t,)))),
    Case(
        "allreduce at once",
        lambda d, rank, n: d.group.WORLD.allreduce(
            [filled(rank)], options(d, "AllreduceOptions", asyncOp=False)
        ).wait(),
    ),
    Case("allreduce_coalesced", on_tensor(lambda d, g, t: g.allreduce_coalesced([t]))),
    Case("broadcast", on_tensor(lambda d, g, t: g.broadcast(t, 1))),
    Case(
        "broadcast with options",
        on_tensor(lambda d, g, t: g.broadcast([t], options(d, "BroadcastOptions", rootRank=1))),
    ),
    Case("allgather", on_outputs(lambda d, g, outputs, t: g.allgather([outputs], [t]))),
    Case("allgather of a tensor", on_outputs(lambda d, g, outputs, t: g.allgather(outputs, t, SOON))),
    Case(
        "allgather_coalesced", on_outputs(lambda d, g, outputs, t: g.allgather_coalesced([[o] for o in outputs], [t]))
    ),
    *(
        Case(name, on_whole(lambda d, g, output, t, name=name: getattr(g, name)(output, t), True))
        for name in ("_allgather_base", "all_gather_single")
    ),
    *(
        Case(name, on_whole(lambda d, g, output, t, name=name: getattr(g, name)([output], [t]), True))
        for name in ("all_gather_single_coalesced", "allgather_into_tensor_coalesced")
    ),
    *(
        Case(name, on_whole(lambda d, g, output, t, name=name: getattr(g, name)(output, t), False))
        for name in ("_reduce_scatter_base", "reduce_scatter_single")
    ),
    *(
        Case(name, on_whole(lambda d, g, output, t, name=name: getattr(g, name)([output], [t]), False))
        for name in ("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced")
    ),
    *(
        Case(f"{call.__name__} {form}", lambda d, rank, n, call=call, form=form: call(d, rank, n, form))
        for call in (gather, scatter, reduce, reduce_scatter, send)
        for form in (False, True)
    ),
    Case("alltoall", on_outputs(lambda d, g, outputs, t: g.alltoall(outputs, [t for _ in outputs]))),
    Case("alltoall_base", lambda d, rank, n: exchange(d, rank, n, "alltoall_base")),
    Case("all_to_all_single", lambda d, rank, n: exchange(d, rank, n, "all_to_all_single", timeout=SOON)),
    Case(
        "all_to_all_single with options",
        lambda d, rank, n: exchange(d, rank, n, "all_to_all_single", opts=options(d, "AllToAllOptions")),
    ),
    Case("barrier", lambda d, rank, n: d.group.WORLD.barrier().wait()),
    Case("barrier with a timeout", lambda d, rank, n: d.group.WORLD.barrier(timeout=SOON).wait()),
    Case("monitored_barrier", lambda d, rank, n: d.group.WORLD.monitored_barrier(SOON, wait_all_ranks=True)),
    Case("text", lambda d, rank, n: d.group.WORLD.allreduce("x")),
    Case("nothing", lambda d, rank, n: d.group.WORLD.broadcast()),
    Case("op is text", lambda d, rank, n: d.group.WORLD.allreduce([filled(0)], "sum")),
    Case("timeout is a number", lambda d, rank, n: d.group.WORLD.allreduce(filled(0), timeout=3)),
    Case("no tensors", lambda d, rank, n: d.group.WORLD.allreduce([]), ValueError, CPP),
    Case(
        "several tensors",
        lambda d, rank, n: d.group.WORLD.allreduce([filled(0), filled(1)]).wait(),
        ValueError,
        "gloo adds a rank's own tensors too, which no other backend does",
    ),
    Case("root outside", lambda d, rank, n: d.group.WORLD.broadcast(filled(0), 9), ValueError, BIG_CHECKS),
    Case("options of another", lambda d, rank, n: d.group.WORLD.broadcast([filled(0)], options(d, "ScatterOptions"))),
    Case("two sent", lambda d, rank, n: d.group.WORLD.send([filled(0)] * 2, (rank + 1) % n, 0), ValueError, BIG_CHECKS),
]


def failed() -> None:
    raise KeyError("a reason")


def utils_of(d: Any) -> Any:
    return importlib.import_module(f"{d.__name__}.collective_utils")


def enforced(d: Any, rank: int, n: int, item: Any, *checker: Any) -> Any:
    slots = [None] * n
    utils_of(d).all_gather_object_enforce_type(d.group.WORLD, slots, item, *checker)
    return slots


UTILS = [
    Case("broadcast", lambda d, rank, n: utils_of(d).broadcast([rank], pg=d.group.WORLD)),
    Case("broadcast of a result", lambda d, rank, n: utils_of(d).broadcast(lambda: [rank], rank=1, pg=d.group.WORLD)),
    Case("broadcast alone", lambda d, rank, n: utils_of(d).broadcast(lambda: 5)),
    Case("broadcast alone of another rank", lambda d, rank, n: utils_of(d).broadcast(5, rank=1)),
    Case("failure", lambda d, rank, n: utils_of(d).broadcast(failed, stage_name="s", rank=1, pg=d.group.WORLD)),
    Case("no success", lambda d, rank, n: utils_of(d).broadcast(None, success=False, pg=d.group.WORLD)),
    Case("data without success", lambda d, rank, n: utils_of(d).broadcast(5, success=False, pg=d.group.WORLD)),
    Case("all_gather", lambda d, rank, n: utils_of(d).all_gather(rank, "s", d.group.WORLD)),
    Case("all_gather of results", lambda d, rank, n: utils_of(d).all_gather(lambda: rank, pg=d.group.WORLD)),
    Case("all_gather alone", lambda d, rank, n: utils_of(d).all_gather(lambda: rank)),
    Case("failure alone", lambda d, rank, n: utils_of(d).all_gather(failed)),
    Case(
        "failure of all",
        lambda d, rank, n: utils_of(d).all_gather(failed, pg=d.group.WORLD),
        RuntimeError,
        "torch documents RuntimeError and ends in a TypeError, as it raises from a tuple",
    ),
    Case(
        "different stages",
        lambda d, rank, n: utils_of(d).all_gather(rank, f"s{rank}", d.group.WORLD),
        RuntimeError,
        "torch documents a check, and returns a shorter list",
    ),
    Case("one type", lambda d, rank, n: enforced(d, rank, n, rank)),
    Case("two types", lambda d, rank, n: enforced(d, rank, n, rank if rank else "x")),
    Case("another check", lambda d, rank, n: enforced(d, rank, n, rank if rank else "x", lambda one, other: True)),
    Case("payload", lambda d, rank, n: vars(utils_of(d).SyncPayload("s", True, 5))),
]

WORKS = [
    Case("timeout", lambda d, rank, n: d.all_reduce(filled(0), async_op=True).wait(SOON)),
    Case("seconds", lambda d, rank, n: d.all_reduce(filled(0), async_op=True).wait(5.0)),
    *(
        Case(f"timeout {timeout!r}", lambda d, rank, n, timeout=timeout: wait_wrongly(d, timeout))
        for timeout in ("x", 1, None)
    ),
    Case("success", lambda d, rank, n: (w := d.all_reduce(filled(0), async_op=True)).wait() and w.is_success()),
    Case("exception", lambda d, rank, n: (w := d.all_reduce(filled(0), async_op=True)).wait() and w.exception()),
    Case("synchronize", lambda d, rank, n: (w := d.all_reduce(filled(0), async_op=True)).wait() and w.synchronize()),
    Case("result", lambda d, rank, n: (w := d.all_reduce(filled(rank), async_op=True)).wait() and w.result()),
    Case("future", lambda d, rank, n: d.all_reduce(filled(rank), async_op=True).get_future()),
    Case(
        "future of a list",
        lambda d, rank, n: d.all_gather([empty() for _ in range(n)], filled(rank), async_op=True).get_future(),
    ),
    Case("source", lambda d, rank, n: (w := d.all_reduce(filled(0), async_op=True)).wait() and w._source_rank()),
    Case("box", lambda d, rank, n: d.Work.unbox(d.all_reduce(filled(0), async_op=True).boxed()).wait()),
    Case("empty box", lambda d, rank, n: d.Work.unbox(3)),
    Case(
        "future of its result",
        lambda d, rank, n: d.all_reduce(filled(rank), async_op=True).get_future_result(),
        ["Future", 0],
        "gloo has none",
    ),
    Case("factor in text", lambda d, rank, n: d._make_nccl_premul_sum("x")),
    Case("factor is None", lambda d, rank, n: d._make_nccl_premul_sum(None)),
    Case("factors", lambda d, rank, n: d._make_nccl_premul_sum(filled(0)), TypeError, BIG_CHECKS),
    Case("old ops", lambda d, rank, n: d.reduce_op.MAX.name),
    Case("all old ops", lambda d, rank, n: sorted(d.reduce_op.__members__)),
    *(
        Case(f"complex {op}", lambda d, rank, n, op=op: d.supports_complex(getattr(d.ReduceOp, op)))
        for op in ("SUM", "AVG", "PREMUL_SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
    ),
]


def wait_wrongly(d: Any, timeout: Any) -> Any:
    work = d.all_reduce(filled(0), async_op=True)
    try:
        return work.wait(timeout)
    finally:
        work.wait()


FAMILIES = {"methods": METHODS, "works": WORKS, "collective_utils": UTILS}


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("family", marked(FAMILIES))
def test_methods(rank: int, world_size: int, family: str) -> None:
    with both() as theirs:
        compare(FAMILIES[family], theirs)


def in_a_subgroup(call: Any) -> Any:
    """Make the call in a group of the ranks 2 and 0, in this order, with root 0 by its rank in the world."""

    def made(d: Any, rank: int, n: int) -> Any:
        group = d.new_group([2, 0], sort_ranks=False)
        return call(d, group, rank, [empty(), empty()])

    return made


SUBGROUP_CALLS = [
    ("all_reduce", lambda d, g, rank, o: (d.all_reduce(t := filled(rank), group=g), t)),
    ("all_gather", lambda d, g, rank, o: (d.all_gather(o, filled(rank), g), o)),
    ("all_gather_single", lambda d, g, rank, o: (d.all_gather_single(t := empty((4, 3)), filled(rank), g), t)),
    ("reduce_scatter", lambda d, g, rank, o: (d.reduce_scatter(o[0], [filled(rank)] * 2, group=g), o)),
    ("reduce_scatter_single", lambda d, g, rank, o: (d.reduce_scatter_single(o[0], filled(rank, (4, 3)), group=g), o)),
    ("all_to_all", lambda d, g, rank, o: (d.all_to_all(o, [filled(rank), filled(rank + 3)], g), o)),
    ("all_to_all_single", lambda d, g, rank, o: (d.all_to_all_single(o[0], filled(rank), group=g), o)),
    ("barrier", lambda d, g, rank, o: d.barrier(g)),
    ("all_gather_object", lambda d, g, rank, o: (d.all_gather_object(s := [0, 0], rank, g), s)),
    ("all_reduce_coalesced", lambda d, g, rank, o: (d.all_reduce_coalesced([t := filled(rank)], group=g), t)),
    ("all_gather_coalesced", lambda d, g, rank, o: (d.all_gather_coalesced([[t] for t in o], [filled(rank)], g), o)),
    ("broadcast", lambda d, g, rank, o: (d.broadcast(t := filled(rank), 0, g), t)),
    ("reduce", lambda d, g, rank, o: (d.reduce(t := filled(rank), 0, group=g), t if rank == 0 else None)),
    ("gather", lambda d, g, rank, o: (d.gather(filled(rank), o if rank == 0 else None, 0, g), o)),
    ("scatter", lambda d, g, rank, o: (d.scatter(o[0], [filled(3), filled(4)] if rank == 0 else None, 0, g), o)),
    ("broadcast_object_list", lambda d, g, rank, o: (d.broadcast_object_list(s := [rank], 0, g), s)),
    ("gather_object", lambda d, g, rank, o: (d.gather_object(rank, s := [7, 7] if rank == 0 else None, 0, g), s)),
    ("scatter_object_list", lambda d, g, rank, o: (d.scatter_object_list(s := [7], [1, 2], 0, g), s)),
]
DOCUMENTED = "torch documents a warning for it, and raises AttributeError"
MESSAGES = [
    ("recv", lambda d, g: d.recv(empty(), 0, g), ...),
    ("recv from any", lambda d, g: d.recv(empty(), group=g), ...),
    ("isend", lambda d, g: d.isend(filled(1), 0, g), ...),
    ("irecv", lambda d, g: d.irecv(empty(), 0, g), ...),
    ("send", lambda d, g: d.send(filled(1), 0, g), None),
    ("send_object_list", lambda d, g: d.send_object_list([1], 0, g), None),
    ("recv_object_list", lambda d, g: d.recv_object_list([1], 0, g), -1),
]
SUBGROUPS = [Case(name, in_a_subgroup(call)) for name, call in SUBGROUP_CALLS]


@pytest.mark.ranks(3)
@pytest.mark.differential("torch", calls=len(SUBGROUPS))
def test_in_a_subgroup_and_outside_it(rank: int, world_size: int) -> None:
    with both() as theirs:
        compare(SUBGROUPS, theirs)


@pytest.mark.ranks(3)
@pytest.mark.differential("torch", calls=len(MESSAGES))
def test_messages_outside_the_group(rank: int, world_size: int) -> None:
    """The members, who send nothing either, look on."""
    with both() as theirs:
        for name, call, ours in MESSAGES:
            made = in_a_subgroup(lambda d, g, rank, o, call=call: call(d, g) if rank == 1 else None)
            differs = ours is not ... and rank == 1
            compare([Case(name, made, ours, DOCUMENTED) if differs else Case(name, made)], theirs)
