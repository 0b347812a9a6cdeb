"""The communicating methods of the torch frontend's ProcessGroup, and their options."""

from __future__ import annotations

import ast
import inspect
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from rank_numbers import check, everyone, make, numbers, total
from torch_world import KINDS, world
from wrong_calls import assert_refused, assert_refused_on_one, named

import shim.frontends.torch.distributed as dist
from shim.errors import UnsupportedError
from shim.frontends.torch.distributed import distributed_c10d as c10d
from shim.record import parameters_of, read

SOON = timedelta(seconds=30)

OPTIONS = (
    *("AllreduceOptions", "AllreduceCoalescedOptions", "AllToAllOptions", "BarrierOptions", "BroadcastOptions"),
    *("GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "AllgatherOptions"),
)


def with_options(name: str, **fields: Any) -> Any:
    options = getattr(c10d, name)()
    for field, value in fields.items():
        setattr(options, field, value)
    return options


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["options", "sync", "tensors", "tensor", "named"])
def test_allreduce(rank: int, world_size: int, kind: str, form: str) -> None:
    with world():
        group, tensor, largest = dist.group.WORLD, make(kind, numbers(rank, 3)), dist.ReduceOp.MAX
        work = {
            "options": lambda: group.allreduce([tensor], with_options("AllreduceOptions", reduceOp=largest)),
            "sync": lambda: group.allreduce(
                (tensor,), opts=with_options("AllreduceOptions", reduceOp=largest, asyncOp=False, timeout=SOON)
            ),
            "tensors": lambda: group.allreduce([tensor], largest),
            "tensor": lambda: group.allreduce(tensor, largest, SOON),
            "named": lambda: group.allreduce(tensor=tensor, timeout=None, op=dist.ReduceOp(largest)),
        }[form]()
        assert isinstance(work, dist.Work)
        assert form != "sync" or work.is_completed()
        assert work.wait() is True
        assert work.result()[0] is tensor
        check(kind, tensor, np.max([numbers(other, 3) for other in range(world_size)], axis=0))
        group.allreduce([tensor := numbers(rank, 2)]).wait()
        check("numpy", tensor, total(world_size, 2))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("form", ["options", "root"])
def test_rooted_methods_in_a_subgroup(rank: int, world_size: int, form: str) -> None:
    """Roots are group ranks."""
    with world():
        group = dist.new_group([2, 1, 0], sort_ranks=False)
        tensor, by_root = numbers(rank, 3), form == "root"
        if by_root:
            group.broadcast(tensor, 0).wait()
        else:
            group.broadcast([tensor], with_options("BroadcastOptions", rootRank=0)).wait()
        check("numpy", tensor, numbers(2, 3))
        tensor = numbers(rank, 3)
        if by_root:
            group.reduce(tensor, 2, op=dist.ReduceOp.MIN).wait()
        else:
            options = with_options("ReduceOptions", rootRank=2, reduceOp=dist.ReduceOp.MIN)
            group.reduce([tensor], options).wait()
        smallest = np.min([numbers(other, 3) for other in range(world_size)], axis=0)
        check("numpy", tensor, smallest if rank == 0 else numbers(rank, 3))
        outputs = [np.zeros(3) for _ in range(world_size)] if rank == 0 else []
        if by_root:
            work = group.gather(outputs, numbers(rank, 3), 2, SOON)
        else:
            options = with_options("GatherOptions", rootRank=2)
            work = group.gather([outputs] if outputs else [], [numbers(rank, 3)], options)
        assert work.wait()
        for place, output in enumerate(outputs):
            check("numpy", output, numbers(2 - place, 3))
        tensor = np.zeros(3)
        inputs = [numbers(place, 3) for place in range(world_size)] if rank == 2 else []
        if by_root:
            group.scatter(tensor, inputs, root=0).wait()
        else:
            group.scatter([tensor], [inputs] if inputs else [], with_options("ScatterOptions")).wait()
        check("numpy", tensor, numbers(2 - rank, 3))


@pytest.mark.ranks(3)
def test_gathering_and_reducing_methods_with_options(rank: int, world_size: int) -> None:
    """Without options, they are compared with torch's."""
    with world():
        group, mine = dist.group.WORLD, numbers(rank, 2)
        outputs = [np.zeros(2) for _ in range(world_size)]
        assert group.allgather([outputs], [mine], with_options("AllgatherOptions", asyncOp=False)).wait()
        check("numpy", np.stack(outputs), np.stack(everyone(world_size, 2)))
        for call in (
            lambda output: group.all_gather_single(output, mine, with_options("AllgatherOptions", timeout=SOON)),
            lambda output: group.allgather_into_tensor_coalesced([np.zeros(2 * world_size), output], [mine, mine]),
        ):
            output = np.zeros(2 * world_size)
            assert call(output).wait()
            check("numpy", output, np.concatenate(everyone(world_size, 2)))
        whole = numbers(rank, 2 * world_size)
        parts = [whole[2 * place : 2 * place + 2] for place in range(world_size)]
        for call in (
            lambda output: group.reduce_scatter([output], [parts], with_options("ReduceScatterOptions", asyncOp=False)),
            lambda output: group.reduce_scatter(output, parts, dist.ReduceOp.SUM, SOON),
            lambda output: group.reduce_scatter_single(output, whole, with_options("ReduceScatterOptions")),
            lambda output: group.reduce_scatter_tensor_coalesced(outputs=[output], inputs=[whole]),
        ):
            output = np.zeros(2)
            assert call(output).wait()
            check("numpy", output, total(world_size, 2 * world_size)[2 * rank : 2 * rank + 2])
        tensors = [numbers(rank, count) for count in (2, 3)]
        options = with_options("AllreduceCoalescedOptions", reduceOp=dist.ReduceOp.AVG)
        assert group.allreduce_coalesced(tensors, options).wait()
        for tensor in tensors:
            check("numpy", tensor, total(world_size, len(tensor)) / world_size)


@pytest.mark.ranks(3)
def test_exchanging_methods(rank: int, world_size: int) -> None:
    with world():
        group = dist.group.WORLD
        inputs = [numbers(rank + 3 * place, place + 1) for place in range(world_size)]
        outputs = [np.zeros(rank + 1) for _ in range(world_size)]
        group.alltoall(outputs, inputs, with_options("AllToAllOptions", timeout=SOON)).wait()
        for other, output in enumerate(outputs):
            check("numpy", output, numbers(other + 3 * rank, rank + 1))
        for call in (group.alltoall_base, group.all_to_all_single):
            output = np.zeros((rank + 1) * world_size)
            into, of = [rank + 1] * world_size, [place + 1 for place in range(world_size)]
            call(output, np.concatenate(inputs), into, of).wait()
            check("numpy", output, np.concatenate(outputs))
            output = np.zeros(world_size)
            call(output, numbers(rank, world_size), [], [], timeout=SOON).wait()
            check("numpy", output, np.array([numbers(other, world_size)[rank] for other in range(world_size)]))
            call(output, numbers(rank, world_size), [], [], with_options("AllToAllOptions")).wait()


@pytest.mark.ranks(2)
def test_sending_methods_and_barriers(rank: int, world_size: int) -> None:
    with world():
        group = dist.group.WORLD
        for work in (group.barrier(), group.barrier(with_options("BarrierOptions")), group.barrier(timeout=SOON)):
            assert work.wait()
        if rank == 0:
            group.send([numbers(0, 3)], 1, 4).wait()
            group.send(tensors=[numbers(0, 2)], dstRank=1, tag=5).wait()
        else:
            tensor = np.zeros(3)
            work = group.recv([tensor], 0, 4)
            assert work.wait()
            assert work.source_rank() == 0
            check("numpy", tensor, numbers(0, 3))
            tensor = np.zeros(2)
            work = group.recv_anysource([tensor], 5)
            assert work.wait()
            assert work._source_rank() == 0
            check("numpy", tensor, numbers(0, 2))


ONE = np.ones(2)
MISTAKES: dict[str, tuple[type[Exception], str, Any]] = {
    "text": (TypeError, "tensor", lambda g, rank, n: g.allreduce("x")),
    "nothing": (TypeError, "arguments", lambda g, rank, n: g.allreduce()),
    "no such name": (TypeError, "arguments", lambda g, rank, n: g.allreduce(tensor=ONE, root=1)),
    "two tensors": (ValueError, "one tensor", lambda g, rank, n: g.allreduce([np.ones(2), np.ones(2)])),
    "no tensors": (ValueError, "one tensor", lambda g, rank, n: g.allreduce([])),
    "op": (TypeError, "reduceOp", lambda g, rank, n: g.allreduce([np.ones(2)], "sum")),
    "timeout": (TypeError, "timeout", lambda g, rank, n: g.allreduce(np.ones(2), timeout=3)),
    "root": (ValueError, "7", lambda g, rank, n: g.broadcast(np.ones(2), 7)),
    "root is text": (TypeError, "rootRank", lambda g, rank, n: g.broadcast(np.ones(2), "0")),
    "root tensor": (
        UnsupportedError,
        "rootTensor",
        lambda g, rank, n: g.broadcast([np.ones(2)], with_options("BroadcastOptions", rootTensor=1)),
    ),
    "options of another": (
        TypeError,
        "opts|arguments|reduceOp",
        lambda g, rank, n: g.allreduce([np.ones(2)], with_options("BarrierOptions")),
    ),
    "coalesced options": (
        TypeError,
        "opts must be AllreduceCoalescedOptions",
        lambda g, rank, n: g.allreduce_coalesced([np.ones(2)], with_options("AllreduceOptions")),
    ),
    "outputs and inputs": (
        ValueError,
        "outputs and inputs",
        lambda g, rank, n: g.all_gather_single_coalesced([np.ones(2 * n)], [ONE, ONE]),
    ),
    "the same output": (ValueError, "the same at 0", lambda g, rank, n: g.allgather([[np.ones(2)] * n], [ONE])),
    "size": (ValueError, "output", lambda g, rank, n: g.all_gather_single(np.ones(2 * n + 1), ONE)),
}


@pytest.mark.ranks(3)
def test_wrong_arguments_on_every_rank_and_on_one(rank: int, world_size: int) -> None:
    with world():
        group = dist.group.WORLD
        for name, (kind, words, wrong) in MISTAKES.items():
            with named(name):
                assert_refused(kind, words, wrong, group, rank, world_size)
                dist.barrier()
                assert_refused_on_one(
                    rank, kind, wrong, lambda *_: dist.all_reduce(np.ones(2)), group, rank, world_size
                )
                dist.barrier()


SENDING: dict[str, tuple[type[Exception], Any]] = {
    "outside": (ValueError, lambda g, rank: g.recv([np.ones(2)], 9, 0)),
    "no list": (TypeError, lambda g, rank: g.send(ONE, 1 - rank, 0)),
    "two tensors": (ValueError, lambda g, rank: g.send([ONE, ONE], 1 - rank, 0)),
    "tag": (TypeError, lambda g, rank: g.recv_anysource([np.ones(2)], "x")),
}


@pytest.mark.ranks(2)
def test_wrong_arguments_of_sending(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, wrong) in SENDING.items():
            with named(name):
                assert_refused(kind, None, wrong, dist.group.WORLD, rank)
                dist.barrier()


@pytest.mark.parametrize("name", OPTIONS)
def test_options_have_torchs_fields_and_defaults(name: str) -> None:
    import torch.distributed as theirs

    real, ours = getattr(theirs.distributed_c10d, name)(), getattr(c10d, name)()
    fields = [field for field in dir(real) if not field.startswith("_")]
    assert fields == [field for field in dir(ours) if not field.startswith("_") and field != "seconds"]
    for field in fields:
        if field == "reduceOp":
            assert ours.reduceOp == dist.ReduceOp.SUM
            assert isinstance(ours.reduceOp, dist.ReduceOp | dist.ReduceOp.RedOpType)
        else:
            assert getattr(ours, field) == getattr(real, field)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("AllreduceOptions", "reduceOp", "sum"),
        ("AllreduceOptions", "asyncOp", "x"),
        ("AllreduceOptions", "timeout", 3),
        ("GatherOptions", "rootRank", 1.5),
        ("ReduceOptions", "rootTensor", None),
        ("BarrierOptions", "device_ids", 0),
    ],
)
def test_options_check_what_they_are_given(name: str, field: str, value: Any) -> None:
    import torch.distributed as theirs

    for module in (theirs.distributed_c10d, c10d):
        with pytest.raises(TypeError):
            setattr(getattr(module, name)(), field, value)
    options = getattr(c10d, name)()
    with pytest.raises(AttributeError):
        options.other = 1


def test_the_methods_have_the_recorded_signatures() -> None:
    records = read("torch-2.13.0").modules["torch.distributed"]["ProcessGroup"]
    for name in ("send", "recv", "recv_anysource", "monitored_barrier"):
        ours = list(inspect.signature(getattr(dist.ProcessGroup, name)).parameters.values())[1:]
        theirs = parameters_of(records[name])
        assert [(one.name, one.kind) for one in ours] == [(one.name, one.kind) for one in theirs]
        for mine, recorded in zip(ours, theirs, strict=True):
            default = inspect.Parameter.empty if recorded.default is None else ast.literal_eval(recorded.default)
            assert mine.default is default
    communicating = {name for name in records if records[name] == "method" and not name.startswith("_")}
    assert {name for name in communicating if not hasattr(dist.ProcessGroup, name)} <= {"split_group"}
