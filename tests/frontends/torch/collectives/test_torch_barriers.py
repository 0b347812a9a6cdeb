"""monitored_barrier tells which ranks have not come, and leaves the group usable."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from rank_numbers import check, numbers
from torch_world import world
from wrong_calls import assert_refused

import shim.frontends.torch.distributed as dist
from shim.core import groups
from shim.core.callers import Caller
from shim.errors import CollectiveTimeoutError, MismatchError, UnsupportedError

SHORT = timedelta(seconds=1)
LONG = timedelta(seconds=30)


def assert_usable(rank: int, world_size: int) -> None:
    tensor = numbers(rank, 3)
    dist.all_reduce(tensor)
    check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))


@pytest.mark.ranks(1, 3)
def test_all_ranks_come(rank: int, world_size: int) -> None:
    with world():
        for wait_all_ranks in (False, True):
            assert dist.monitored_barrier(timeout=LONG, wait_all_ranks=wait_all_ranks) is None
        assert dist.monitored_barrier() is None
        assert dist.group.WORLD.monitored_barrier(LONG, wait_all_ranks=True) is None
        assert_usable(rank, world_size)


@pytest.mark.ranks(3)
def test_nobody_passes_before_the_last_comes(rank: int, world_size: int, tmp_path: Any) -> None:
    with world():
        folder = [str(tmp_path)]
        dist.broadcast_object_list(folder)
        for turn in range(30):
            came = os.path.join(folder[0], str(turn))
            if rank == turn % world_size:
                with open(came, "x", encoding="utf-8"):
                    pass
            dist.monitored_barrier(timeout=LONG)
            assert os.path.exists(came)


@pytest.mark.ranks(4)
@pytest.mark.parametrize("wait_all_ranks", [False, True])
def test_who_has_not_come_is_told_to_all_who_have(rank: int, world_size: int, wait_all_ranks: bool) -> None:
    with world():
        late = {1, 3}
        dist.barrier()  # from here on, who comes comes in time
        if rank not in late:
            with pytest.raises(RuntimeError, match="1, 3" if wait_all_ranks else "group rank 1 has") as caught:
                dist.monitored_barrier(timeout=SHORT if rank == 0 else LONG, wait_all_ranks=wait_all_ranks)
            assert isinstance(caught.value, CollectiveTimeoutError if rank == 0 else MismatchError)
            if rank == 0:
                assert caught.value.ranks == ((1, 3) if wait_all_ranks else (1,))
        dist.barrier()
        if rank in late:  # comes when the others have given up, as if it were the first
            with pytest.raises(CollectiveTimeoutError, match="rank 0 has not come"):
                dist.monitored_barrier(timeout=SHORT)
        dist.barrier()
        dist.monitored_barrier(timeout=LONG)
        assert_usable(rank, world_size)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("missed", [1, 3])
def test_a_barrier_that_ranks_missed_is_no_part_of_the_next(rank: int, world_size: int, missed: int) -> None:
    with world():
        for _ in range(missed):
            if rank == 0:
                with pytest.raises(CollectiveTimeoutError, match="group rank 1 has not come"):
                    dist.monitored_barrier(timeout=timedelta(seconds=0.2))
            dist.barrier()
        for _ in range(3):
            assert dist.monitored_barrier(timeout=LONG) is None
        assert_usable(rank, world_size)


@pytest.mark.ranks(3)
def test_a_missed_barrier_leaves_the_group_usable_beyond_its_timeout(rank: int, world_size: int) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=1))
    try:
        if rank == 0:
            with pytest.raises(CollectiveTimeoutError, match="has not come"):
                dist.monitored_barrier()  # for the group's own timeout
            with pytest.raises(CollectiveTimeoutError, match="has not come"):
                dist.monitored_barrier(timeout=timedelta(seconds=2))
        time.sleep(1.5 if rank == 0 else 4.5)
        dist.monitored_barrier(timeout=LONG)
        assert_usable(rank, world_size)
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(2)
def test_rank_0_does_not_come(rank: int, world_size: int) -> None:
    with world():
        for _ in range(2):  # the answer that comes late the first time is not taken for that of the second
            if rank == 1:
                with pytest.raises(CollectiveTimeoutError, match="rank 0") as caught:
                    dist.monitored_barrier(timeout=SHORT)
                assert caught.value.ranks == (0,)
            dist.barrier()
            if rank == 0:  # the other rank has come, and gone
                with pytest.raises(CollectiveTimeoutError, match="group rank 1 has not come"):
                    dist.monitored_barrier(timeout=SHORT)
            dist.barrier()
        dist.monitored_barrier(timeout=LONG)
        assert_usable(rank, world_size)


@pytest.mark.ranks(3)
def test_a_monitored_barrier_of_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 0], sort_ranks=False)
        if rank == 1:
            with pytest.warns(UserWarning, match="rank 1 does not belong"):
                assert dist.monitored_barrier(group) is None
        else:
            assert dist.monitored_barrier(group, LONG) is None
        if rank == 2:
            with pytest.raises(CollectiveTimeoutError) as caught:
                dist.monitored_barrier(group, SHORT)
            assert caught.value.ranks == (1,)
        dist.barrier()


@pytest.mark.ranks(2)
def test_a_number_of_seconds_is_taken_with_a_warning(rank: int, world_size: int) -> None:
    with world(), pytest.warns(UserWarning, match="timedelta") as caught:
        dist.monitored_barrier(timeout=30.0)
    assert caught[0].filename == __file__


@pytest.mark.ranks(3)
@pytest.mark.parametrize("wrong", [{0}, {1}, {0, 1}])
@pytest.mark.parametrize("timeout", [3, "x"])
def test_a_rank_with_a_wrong_timeout_has_not_come(rank: int, world_size: int, wrong: set[int], timeout: Any) -> None:
    with world():
        dist.barrier()
        if rank in wrong:
            assert_refused(TypeError, "timeout", dist.monitored_barrier, timeout=timeout)
        elif rank == 0:
            with pytest.raises(CollectiveTimeoutError, match="group rank 1 has not come"):
                dist.monitored_barrier(timeout=SHORT)
        else:
            late, told = (CollectiveTimeoutError, "rank 0 has not come"), (MismatchError, "group rank 1 has not come")
            kind, match = late if 0 in wrong else told
            with pytest.raises(kind, match=match):
                dist.monitored_barrier(timeout=SHORT if 0 in wrong else LONG)
        dist.barrier()
        for _ in range(3):
            dist.monitored_barrier(timeout=LONG)
        assert_usable(rank, world_size)


@pytest.mark.ranks(1, 3)
def test_without_any_time_the_others_are_late(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group(list(reversed(range(world_size))), sort_ranks=False)
        first = world_size - 1  # the group's rank 0, which waits for the others alone
        for begin in (
            lambda: group.monitored_barrier(timedelta(0)),
            lambda: group.monitored_barrier(timedelta(seconds=-1), wait_all_ranks=True),
            lambda: dist.monitored_barrier(group, timedelta(0), wait_all_ranks=True),
            lambda: dist.monitored_barrier(group, timedelta(seconds=-1)),
        ):
            if rank == first and world_size > 1:
                with pytest.raises(RuntimeError, match=r"group ranks? 1.* not come") as caught:
                    begin()
                assert isinstance(caught.value, CollectiveTimeoutError)
            elif rank == first:
                begin()
        dist.barrier()
        dist.monitored_barrier(group, timeout=LONG)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_wrong_timeouts_leave_the_group_usable_beyond_its_timeout(rank: int, world_size: int) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=1))
    try:
        for _ in range(10 if rank == 0 else 0):
            with pytest.raises(TypeError, match="timeout"):
                dist.monitored_barrier(timeout="x")
        time.sleep(1.5)
        assert_usable(rank, world_size)
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(2)
def test_a_missed_barrier_is_no_part_of_those_after_another_initialisation(rank: int, world_size: int) -> None:
    """The world and its messages are the same where another frontend has kept it alive."""
    another = Caller("another")
    try:
        groups.enter_world(another, "another", timeout=60.0)
        with world():
            if rank == 0:
                with pytest.raises(CollectiveTimeoutError, match="group rank 1 has not come"):
                    dist.monitored_barrier(timeout=timedelta(seconds=0.2))
            dist.barrier()
        with world():
            dist.monitored_barrier(timeout=LONG)
            dist.barrier()
            if rank == 0:
                with pytest.raises(CollectiveTimeoutError, match="group rank 1 has not come"):
                    dist.monitored_barrier(timeout=timedelta(seconds=0.5))
            dist.barrier()
            dist.monitored_barrier(timeout=LONG)
            assert_usable(rank, world_size)
    finally:
        groups.close_world()


@pytest.mark.ranks(2)
@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(TypeError, {"timeout": 3}), (UnsupportedError, {"device_ids": ["cuda:0"]})],
)
def test_a_wrong_barrier_on_one_rank(rank: int, world_size: int, kind: type[Exception], wrong: dict[str, Any]) -> None:
    with world():
        with pytest.raises(kind if rank == 0 else MismatchError):
            dist.barrier(**(wrong if rank == 0 else {}))
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_a_message_of_the_users_is_left_alone(rank: int, world_size: int) -> None:
    with world():
        if rank == 1:
            dist.isend(numbers(1, 3), 0).wait()
        dist.monitored_barrier(timeout=LONG)
        if rank == 0:
            tensor = np.zeros(3)
            dist.recv(tensor)
            check("numpy", tensor, numbers(1, 3))


LOST = """
import os, sys, time
from datetime import timedelta
import shim.frontends.torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", f"file://{sys.argv[2]}", rank=rank, world_size=3)
group = dist.new_group([2, 1, 0], sort_ranks=False)
dist.barrier(group)
if rank == 1:
    os._exit(0)
begin = time.monotonic()
try:
    dist.monitored_barrier(group, timedelta(seconds=60))
except RuntimeError as error:
    print(f"{type(error).__name__} {error}", flush=True)
os._exit(0 if time.monotonic() - begin < 20 else 1)
"""


def test_a_rank_that_died_is_not_waited_for(tmp_path: Any) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", LOST, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True
        )
        for rank in range(3)
    ]
    told = [one.communicate(timeout=300)[0] for one in ranks]
    assert [one.returncode for one in ranks] == [0, 0, 0]
    assert told[2].startswith("PeerLostError torch.distributed.monitored_barrier: group rank 1 has not come")
    assert told[0].startswith(("MismatchError", "PeerLostError")), told[0]  # group rank 0 tells it, or goes itself
