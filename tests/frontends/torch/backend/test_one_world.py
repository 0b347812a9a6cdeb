"""Groups that torch's own functions make and those that the frontend makes are groups to both."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as own
import torch.distributed.nn.functional  # imported while there is a group, it would have that as its default for ever
from linked_worlds import TWO, linked, place, total

import shim.errors
import shim.frontends.torch.distributed as dist
from shim.frontends.torch._backend.making import link, unlink
from shim.frontends.torch._backend.own_record import by_torch
from shim.frontends.torch._backend.serving import serve


@TWO
@pytest.mark.parametrize("by_frontend", [False, True])
def test_the_world_is_one(rank: int, by_frontend: bool) -> None:
    with linked(by_frontend=by_frontend):
        assert own.group.WORLD is dist.group.WORLD
        assert isinstance(own.group.WORLD, own.ProcessGroup)
        assert (own.get_rank(), own.get_world_size()) == (dist.get_rank(), dist.get_world_size()) == (rank, 2)
        assert own.get_backend() == dist.get_backend() == "shim"
        assert total() == total(module=dist) == 2
        (dist if by_frontend else own).destroy_process_group()
        assert not own.is_initialized()
        assert not dist.is_initialized()


@TWO
def test_a_world_that_has_ended_is_not_torchs(rank: int) -> None:
    dist.init_process_group()
    dist.group.WORLD.shutdown()
    link()
    try:
        assert not own.is_initialized()
        with linked():
            assert total() == 2
    finally:
        unlink()


@TWO
@pytest.mark.parametrize("by_frontend", [False, True])
def test_subgroups_are_groups_to_both(rank: int, by_frontend: bool) -> None:
    with linked(by_frontend=by_frontend):
        made = [module.new_group(ranks) for ranks in ([0, 1], [1], [0]) for module in (own, dist)]
        made.append(own.new_group([0, 1], use_local_synchronization=True))
        names = [group.group_name for group in made if not isinstance(group, int)]
        assert len(set(names)) == len(names)
        assert names[0] == "1"
        assert names[1] == "2"
        for group in made:
            for module in (own, dist):
                assert module.get_rank(group) == (-1 if group == own.GroupMember.NON_GROUP_MEMBER else group.rank())
                if group != own.GroupMember.NON_GROUP_MEMBER:
                    assert total(group, module) == group.size()
                    assert module.get_process_group_ranks(group) == list(group.core.ranks)
        own.destroy_process_group(made[0])
        dist.destroy_process_group(made[1])
        for group in made[:2]:
            for module in (own, dist):
                with pytest.raises((ValueError, RuntimeError)):
                    module.destroy_process_group(group)
            with pytest.raises(RuntimeError):  # torch's C++ code has forgotten the name too
                own.distributed_c10d._resolve_process_group(group.group_name)
        assert total() == 2


@TWO
def test_torchs_own_code_finds_the_store_of_a_world_of_the_frontends(rank: int) -> None:
    with linked(by_frontend=True):
        store = own.PrefixStore("part", own.distributed_c10d._get_default_store())
        store.set_timeout(timedelta(seconds=20))
        store.set(f"of {rank}", "value")
        assert store.get(f"of {1 - rank}") == b"value"
        store.add("sum", rank + 1)
        store.wait([f"of {1 - rank}"])
        own.barrier()
        assert store.add("sum", 0) == 3
        assert store.check(["sum", "of 0"])
        assert not store.check(["nothing"])
        assert store.compare_set("of 0", "value" if rank == 0 else "else", f"by {rank}") in (b"by 0", b"value")
        own.barrier()
        assert store.get("of 0") == b"by 0"
        own.barrier()


@TWO
def test_a_world_from_before_the_link_is_torchs_too(rank: int) -> None:
    dist.init_process_group()
    part, other = dist.new_group([0, 1]), dist.new_group([0, 1])
    link()
    try:
        assert dist.get_process_group_ranks(part) == [0, 1]
        dist.destroy_process_group(other)
        assert [group.group_name for group in own.distributed_c10d._world.pg_names] == ["0", "1"]
        assert own.is_initialized()
        assert own.get_world_size() == 2
        assert isinstance(dist.group.WORLD, own.ProcessGroup)
        assert total() == total(part, dist) == 2
        own.destroy_process_group()
        assert not dist.is_initialized()
    finally:
        unlink()


@TWO
def test_beside_torchs_own_groups_nothing_is_shared(rank: int) -> None:
    own.init_process_group("gloo", **place())
    part = own.new_group([0, 1])
    try:
        with linked(by_frontend=True):
            ours = dist.new_group([0, 1])
            assert dist.group.WORLD.group_name == "0"
            assert ours.group_name == part.group_name == "1"
            assert type(own.group.WORLD) is own.ProcessGroup
            assert total(ours, dist) == 2
            assert own.get_process_group_ranks(part) == [0, 1]
            dist.destroy_process_group()
            assert own.new_group([0, 1]).group_name == "2"
            own.barrier()
    finally:
        if own.is_initialized():
            own.destroy_process_group()


@TWO
def test_a_shrunk_world_is_torchs_too(rank: int) -> None:
    with linked(by_frontend=True):
        if rank == 0:
            dist.shrink_group([1])
            assert own.group.WORLD is dist.group.WORLD
            assert own.get_world_size() == 1
            own.destroy_process_group()
            assert not dist.is_initialized()


@TWO
def test_a_thread_in_torchs_own_call_keeps_nothing_from_the_record(rank: int) -> None:
    with linked(), ThreadPoolExecutor(1) as other:
        holds, goes_on = threading.Event(), threading.Event()

        def in_torch() -> None:
            with by_torch():
                holds.set()
                goes_on.wait()

        done = other.submit(in_torch)
        holds.wait()
        group = dist.new_group([0, 1])
        assert own.get_process_group_ranks(group) == [0, 1]
        goes_on.set()
        done.result()


@TWO
def test_a_store_is_waited_at_for_as_long_as_the_group_would(rank: int) -> None:
    where = place()
    link()
    try:
        if rank == 0:
            with pytest.raises(RuntimeError, match="500 ms"):
                own.init_process_group("shim", timeout=timedelta(seconds=0.5), **where)
            assert not own.is_initialized()
            assert not dist.is_initialized()
        with pytest.raises(shim.errors.UnsupportedError, match="HashStore"):
            own.init_process_group("shim", store=own.HashStore(), rank=rank, world_size=2)
    finally:
        unlink()
    own.distributed_c10d._world.group_count = 0  # torch itself counts a start that fails, here on one rank twice


@TWO
@pytest.mark.parametrize("backend", ["gloo", None, "cpu:gloo", "cpu:gloo,cuda:nccl"])
def test_served_groups_are_the_engines(rank: int, backend: str | None) -> None:
    serve()
    with linked(backend):
        named = backend or "undefined"
        assert type(own.group.WORLD).__name__ == "EngineGroup"
        assert own.get_backend() == named
        assert (
            type(own.new_group([0, 1])).__name__
            == type(own.new_group([0, 1], backend="gloo")).__name__
            == "EngineGroup"
        )
        assert total() == 2
        mesh = own.init_device_mesh("cpu", (2,))
        assert total(mesh.get_group()) == 2
        if backend == "gloo":
            own.monitored_barrier()
    own.init_process_group("gloo", **place())
    assert type(own.group.WORLD).__name__ == "ProcessGroup"
    own.barrier()
    own.destroy_process_group()


@TWO
def test_a_mismatch_names_the_programs_line_through_torchs_frames(rank: int) -> None:
    with linked():
        with pytest.raises(shim.errors.MismatchError) as told:
            own.all_reduce(torch.ones(rank + 1))
        assert str(told.value).count("test_one_world.py:") == 2
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        loss = model(torch.ones(1, 2)).sum()
        step = (lambda: own.all_reduce(torch.ones(5))) if rank else loss.backward
        with pytest.raises(RuntimeError, match=r"the ranks disagree on the shape(.|\n)*test_one_world.py"):
            step()
        assert total() == 2


@TWO
def test_futures_are_completed_with_the_tensors_or_the_error(rank: int) -> None:
    with linked():
        tensor = torch.ones(2)
        future = own.all_reduce(tensor, async_op=True).get_future()
        nested = future.then(lambda done: own.all_reduce(done.value()[0], async_op=True).get_future().wait()[0] + 1)
        assert nested.wait().tolist() == [5.0, 5.0]
        assert tensor.tolist() == [4.0, 4.0]
        work = own.all_reduce(torch.ones(rank + 1), async_op=True)
        with pytest.raises(RuntimeError, match=r"MismatchError: (.|\n)*the ranks disagree on the shape"):
            work.get_future().wait()
        with pytest.raises(shim.errors.MismatchError):
            work.wait()
        assert not work.is_success()
        assert isinstance(work.exception(), shim.errors.MismatchError)
        assert work.get_future_result().wait() == 2


@TWO
def test_a_timeout_is_torchs_own_error_too(rank: int) -> None:
    with linked():
        group = own.new_group([0, 1], timeout=timedelta(seconds=0.2))
        if rank == 0:
            with pytest.raises(own.DistBackendError, match="made no progress") as told:
                own.all_reduce(torch.ones(1), group=group)
            assert isinstance(told.value, shim.errors.CollectiveTimeoutError)
            assert type(told.value).__name__ == "CollectiveTimeoutError"
        own.barrier()


@TWO
def test_work_waits_for_a_time_and_tells_its_source(rank: int) -> None:
    with linked():
        received = torch.zeros(2)
        if rank == 0:
            work = own.irecv(received)
            assert not work.is_completed()
            with pytest.raises(RuntimeError):
                work.wait(timedelta(milliseconds=20))
            own.barrier()
            assert work.wait()
            assert work.is_completed()
            assert work.is_success()
            assert work._source_rank() == 1
            assert work.result()[0] is received
        else:
            own.barrier()
            own.send(torch.ones(2), 0)
        own.barrier()


@TWO
def test_premultiplied_sums_and_averages(rank: int) -> None:
    with linked():
        tensor = torch.full((2,), rank + 1.0)
        own.all_reduce(tensor, own._make_nccl_premul_sum(0.5))
        assert tensor.tolist() == [1.5, 1.5]
        own.all_reduce(tensor, own.ReduceOp.AVG)
        assert tensor.tolist() == [1.5, 1.5]


@TWO
def test_what_the_engine_has_not_is_refused_by_name(rank: int) -> None:
    with linked():
        group: Any = own.group.WORLD
        for call in (
            lambda: group._start_coalescing(torch.device("cpu")),
            lambda: group._register_on_completion_hook(print),
            lambda: own.new_group([0, 1], pg_options=object()),
        ):
            with pytest.raises(shim.errors.UnsupportedError):
                call()
