"""Work, what torch.compile does with the frontend, and futures."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, numbers
from torch_world import world
from wrong_calls import assert_refused

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError
from shim.frontends.torch._calls import work as torch_work


@pytest.mark.ranks(2)
def test_the_methods_of_a_work(rank: int, world_size: int) -> None:
    with world():
        tensor = numbers(rank, 3)
        work = dist.all_reduce(tensor, async_op=True)
        assert work.wait(timedelta(seconds=30)) is True
        assert work.wait(30.0) is True
        assert work.wait() is True
        assert work.synchronize() is None
        assert work.block_current_stream() is None
        assert (work.is_completed(), work.is_success(), work.exception()) == (True, True, None)
        assert work.result()[0] is tensor
        assert dist.Work.unbox(work.boxed()).result()[0] is tensor
        check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))


@pytest.mark.ranks(1)
@pytest.mark.parametrize("timeout", ["x", 1, None, b"1"])
def test_a_timeout_that_is_no_time(rank: int, world_size: int, timeout: Any) -> None:
    with world():
        work = dist.all_reduce(np.ones(2), async_op=True)
        assert_refused(TypeError, r"Work\.wait: timeout must be a datetime.timedelta", work.wait, timeout)
        work.wait()


def test_a_box_that_holds_no_work() -> None:
    with pytest.raises(RuntimeError, match="unbox"):
        dist.Work.unbox(3)


@pytest.mark.engine("shared_memory")  # the others do not look for circles
@pytest.mark.ranks(2)
def test_ranks_that_wait_for_each_other_are_told_after_futures_too(rank: int) -> None:
    """The idle thread that waited for a future makes no call that could end the others' waits."""
    with world():
        dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
        if rank == 0:
            with pytest.raises(MismatchError, match="cannot be made, because these ranks wait for each other"):
                dist.new_group([0, 1], use_local_synchronization=True)
        else:
            with pytest.raises(MismatchError, match=r"rank 0: refused: group .* cannot be made"):
                dist.barrier()
        dist.barrier()


@pytest.mark.ranks(1)
def test_a_future_of_what_fails_in_no_way_of_ours(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(work: dist.Work) -> bool:
        raise KeyError("unheard of")

    with world():
        work = dist.all_reduce(torch.ones(1), async_op=True)
        work.wait()
        monkeypatch.setattr(dist.Work, "wait", wait)
        assert work.get_future_result().wait() == 2
        with pytest.raises(RuntimeError, match="KeyError: 'unheard of'"):
            work.get_future().wait()


@pytest.mark.ranks(2)
def test_futures(rank: int, world_size: int) -> None:
    with world():
        tensor = torch.from_numpy(numbers(rank, 3))
        work = dist.all_reduce(tensor, async_op=True)
        assert work.get_future_result().wait() == 0
        assert work.get_future().wait()[0] is tensor
        outputs = [torch.zeros(1) for _ in range(world_size)]
        received = dist.all_gather(outputs, torch.ones(1), async_op=True).get_future().wait()
        assert [one.item() for one in received] == [1.0] * world_size
        failing = dist.all_reduce(torch.ones(2 + rank), async_op=True)
        assert failing.get_future_result().wait() == 2
        work = dist.irecv(torch.zeros(1), 1 - rank)
        with pytest.raises(RuntimeError):
            work.wait(timedelta(milliseconds=1))
        dist.barrier()
        sent = dist.isend(torch.ones(1), 1 - rank)
        assert work.wait()
        assert sent.wait()


class OnGpu(torch.Tensor):
    device = torch.device("cuda", 1)  # type: ignore[assignment]  # of one that is not there


@pytest.mark.ranks(1)
def test_a_future_of_tensors_on_gpus_knows_their_devices(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that who waits for it, or comes behind it, is ordered on the streams there."""
    told: list[Any] = []

    def future(devices: Any = None) -> Any:
        told.append(devices)
        return torch.futures.Future()

    with world():
        begun = dist.all_reduce(np.ones(2), async_op=True)
        begun.wait()
        monkeypatch.setattr(torch_work, "future_class", lambda _caller: future)
        for outputs in ([[torch.ones(1).as_subclass(OnGpu)], []], torch.ones(1), np.ones(1)):
            assert len(dist.Work(begun._started, outputs).get_future().wait()) > 0
    assert told == [[torch.device("cuda", 1)], None, None]


ALONE = """
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group(init_method="tcp://localhost:{port}", rank=0, world_size=1)
work = dist.all_reduce(np.ones(2), async_op=True)
work.wait()
for call in (work.get_future, lambda: dist.all_reduce_coalesced([np.ones(2)], async_op=True)):
    try:
        call()
    except NotImplementedError as error:
        print(type(error).__name__)
"""


@pytest.mark.engine("shared_memory")  # c10d needs torch
def test_futures_without_torch(free_port: int) -> None:
    program = ALONE.format(port=free_port)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert (ended.stdout.split(), ended.stderr) == (["UnsupportedError"] * 2, "")


@pytest.fixture
def free_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return int(taken.getsockname()[1])


@pytest.mark.ranks(2)
def test_a_compiled_function_communicates_between_its_graphs(rank: int, world_size: int) -> None:
    def step(tensor: Any) -> Any:
        doubled = tensor * 2
        dist.all_reduce(doubled)
        work = dist.all_reduce(doubled, dist.ReduceOp.MAX, async_op=True)
        work.wait()
        dist.group.WORLD.broadcast(doubled, 0).wait()
        return doubled + 1

    def outer(tensor: Any) -> Any:
        return step(tensor) - dist.get_rank()

    with world():
        compiled = torch.compile(outer, backend="eager")
        for count in (3, 4):
            tensor = torch.from_numpy(numbers(rank, count))
            check("torch", compiled(tensor), 2 * sum(numbers(other, count) for other in range(world_size)) + 1 - rank)
        torch._dynamo.reset()
        whole = torch.compile(outer, backend="eager", fullgraph=True)
        with pytest.raises(torch._dynamo.exc.Unsupported, match="shim's frontends communicate between graphs"):
            whole(torch.ones(3))
        torch._dynamo.reset()


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
def test_every_kind_of_call_in_a_compiled_function(rank: int, world_size: int) -> None:
    def exchange(tensor: Any) -> Any:
        outputs = [torch.zeros_like(tensor), torch.zeros_like(tensor)]
        dist.all_gather(outputs, tensor + 1)
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, tensor, 1 - rank), dist.P2POp(dist.irecv, outputs[0], 1 - rank)]
        )
        for work in works:
            work.wait()
        with dist._coalescing_manager():
            dist.all_reduce(outputs[1])
        items = [rank]
        dist.broadcast_object_list(items, 1)
        dist.monitored_barrier()
        return outputs[0] + outputs[1] + items[0]

    with world():
        result = torch.compile(exchange, backend="eager")(torch.from_numpy(numbers(rank, 3)))
        check("torch", result, numbers(1 - rank, 3) + 2 * (numbers(1, 3) + 1) + 1)
        torch._dynamo.reset()
