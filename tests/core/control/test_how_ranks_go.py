"""How ranks go: by leaving, by dying, by stopping, and what a forked child does to its parent's connections. The ranks are processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from ranks_in_threads import SECRET, assert_soon, free_address, meet_as, new_job, on_each, world

from shim.core.control import Control, Meeting, meet
from shim.errors import PeerLostError, StateError

_PRELUDE = """
import os, signal, sys, time
from shim.core.control import Meeting, meet
rank, size, key, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
control = meet(Meeting(rank, size, key, address, b"sixteen characters or more"), 20)
"""


@pytest.fixture(params=["unix", "tcp"])
def job(request: pytest.FixtureRequest) -> Meeting:
    return new_job(3, "" if request.param == "unix" else free_address(), SECRET)


@contextmanager
def process(job: Meeting, rank: int, program: str) -> Iterator[subprocess.Popen[str]]:
    """A rank of *job* whose process runs *program* when it has met the others."""
    argv = [sys.executable, "-c", _PRELUDE + textwrap.dedent(program), str(rank), str(job.size), job.key, job.address]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def these(job: Meeting, ranks: Sequence[int]) -> Iterator[list[Control]]:
    """These ranks of *job* in this process; the others are processes that have been started."""
    met = meet_as(job, ranks, 20)
    assert all(isinstance(control, Control) for control in met.values()), met
    try:
        yield [met[rank] for rank in ranks]
    finally:
        for rank in sorted(ranks, reverse=True):
            met[rank].close()


def output(child: subprocess.Popen[Any]) -> tuple[str, str]:
    out, err = child.communicate(timeout=10)
    return str(out), str(err)


def test_a_killed_process_is_told_to_all_at_once(job: Meeting) -> None:
    with process(job, 2, "time.sleep(60)") as child, these(job, [0, 1]) as controls:
        gone: dict[int, list[tuple[int, float]]] = {0: [], 1: []}
        for control in controls:
            control.when_gone(lambda rank, mine=gone[control.rank]: mine.append((rank, time.monotonic())))
        waiting: dict[int, object] = {}
        thread = threading.Thread(
            target=lambda: waiting.update(
                on_each([0, 1], lambda rank: controls[rank].exchange("k", [0, 1, 2], b"", 10))
            )
        )
        thread.start()
        time.sleep(0.1)
        assert controls[1].ending_of(2) == ""
        assert not controls[1].is_gone(2)
        killed = time.monotonic()
        child.kill()
        thread.join(5)
        peer = controls[0].peers[2]
        assert peer.pid == child.pid
        for rank in (0, 1):
            ((who, when),) = gone[rank]
            assert who == 2
            assert when - killed < 0.5  # 0.05 on a quiet machine
            error = waiting[rank]
            assert isinstance(error, PeerLostError)
            assert error.ranks == (2,)
            text = f"exchange 'k' among ranks 0-2: rank 2's process (pid {child.pid} on host {peer.host}) died "
            assert str(error).startswith(text)
            assert str(error).endswith(f"ms ago (rank {rank} of 3)")
            assert controls[rank].is_gone(2)
            assert not controls[rank].is_gone(1 - rank)
        with pytest.raises(PeerLostError, match="rank 2's process"):  # who comes later learns it, too
            controls[1].exchange("later", [1, 2], b"", 5)
        late: list[int] = []
        controls[1].when_gone(late.append)
        assert_soon(lambda: late == [2])


def test_a_cancelled_handler_of_endings_is_not_called(job: Meeting) -> None:
    with these(replace(job, size=3), [0, 1, 2]) as controls:
        heard: list[int] = []
        controls[0].when_gone(heard.append)()
        controls[2].close("enough")
        assert_soon(lambda: controls[0].is_gone(2))
        controls[1].exchange("k", [1], b"", 1)
        time.sleep(0.02)
        assert heard == []


def test_leaving_says_why(job: Meeting) -> None:
    with these(job, [0, 1, 2]) as controls:
        controls[2].close("ValueError: on purpose")
        assert_soon(lambda: controls[0].is_gone(2) and controls[1].is_gone(2))
        assert controls[1].ending_of(2) == " left the group (ValueError: on purpose)"
        with pytest.raises(PeerLostError, match=r"rank 2 left the group \(ValueError: on purpose\)"):
            controls[0].exchange("k", [0, 2], b"", 5)


def test_a_program_that_ends_has_left(job: Meeting) -> None:
    with process(job, 2, "") as child, these(job, [0, 1]) as controls:
        assert_soon(lambda: controls[1].is_gone(2))
        assert controls[1].ending_of(2) == " left the group (its program ended)"
        assert output(child) == ("", "")
        assert child.returncode == 0


@pytest.mark.parametrize("close", ["control.close('rank 0 is done')", ""])
def test_rank_0_may_end_first(job: Meeting, close: str) -> None:
    program = f"""
    control.put("last words", b"x" * 1_000_000)
    {close}
    """
    with process(job, 0, program) as child, these(job, [1, 2]) as controls:
        assert_soon(lambda: controls[0].is_gone(0) and controls[1].is_gone(0))
        for control in controls:
            why = "rank 0 is done" if close else "its program ended"
            assert control.ending_of(0) == f" left the group ({why})"
        assert output(child) == ("", "")
        assert child.returncode == 0
        assert_soon(lambda: controls[0]._hub_is_lost)
        assert not controls[0].is_gone(2)
        with pytest.raises(PeerLostError, match=r"rank 0 left the group .* and with it the control connections"):
            controls[0].exchange("k", [1, 2], b"", 5)


def test_after_rank_0_has_closed_its_process_serves_the_others(job: Meeting) -> None:
    with these(job, [0, 1, 2]) as controls:
        controls[0].close("done")
        assert_soon(lambda: controls[1].is_gone(0))
        assert on_each([1, 2], lambda rank: controls[rank].exchange("k", [1, 2], b"%d" % rank, 5)) == {
            1: [b"1", b"2"],
            2: [b"1", b"2"],
        }
        controls[1].close()
        assert_soon(lambda: controls[2].is_gone(1))


def test_a_killed_hub_is_told_by_all_others(job: Meeting) -> None:
    with process(job, 0, "time.sleep(60)") as child, these(job, [1, 2]) as controls:
        waiting: dict[int, object] = {}
        thread = threading.Thread(
            target=lambda: waiting.update(on_each([0, 1], lambda number: controls[number].get("never", 10)))
        )
        thread.start()
        time.sleep(0.1)
        child.kill()
        thread.join(5)
        for control, error in zip(controls, (waiting[0], waiting[1]), strict=True):
            assert isinstance(error, PeerLostError)
            assert error.ranks == (0,)
            assert f"get 'never': rank 0's process (pid {child.pid} on host" in str(error)
            assert "nothing is known of the other ranks" in str(error)
            assert control.is_gone(0)


def test_a_rank_that_dies_before_all_are_there_may_be_started_again(job: Meeting) -> None:
    got: dict[int, Any] = {}
    hub = threading.Thread(target=lambda: got.update(meet_as(job, [0], 20)))
    hub.start()
    program = _PRELUDE.replace(
        "control = ", "import threading; threading.Timer(0.3, os._exit, [1]).start(); control = "
    )
    subprocess.run([sys.executable, "-c", program, "1", "3", job.key, job.address], check=False, timeout=20)
    got.update(meet_as(job, [1, 2], 20))
    hub.join()
    for rank in (2, 1, 0):
        got[rank].close()


def test_a_stopped_process_is_not_lost() -> None:
    job = new_job(2, free_address(), SECRET)
    with process(job, 1, "time.sleep(60)") as child, these(job, [0]) as controls:
        child.send_signal(signal.SIGSTOP)
        time.sleep(3.6)  # no heartbeat of its own comes, but its kernel acknowledges ours
        assert not controls[0].is_gone(1)
        child.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        assert not controls[0].is_gone(1)
        child.kill()
        assert_soon(lambda: controls[0].is_gone(1))
        assert "died" in controls[0].ending_of(1)


def test_a_forked_child_leaves_its_parents_connections_alone(job: Meeting) -> None:
    others = set(filter(_is_control_socket, os.listdir("/proc/self/fd")))
    with these(job, [0, 1, 2]) as controls:
        child = os.fork()
        if not child:
            status = 1
            try:
                for control in controls:
                    control.close()
                    try:
                        control.exchange("k", [0, 1, 2], b"", 1)
                    except StateError as error:
                        status = 0 if "which forked this one" in str(error) else 2
                sockets = [
                    name for name in os.listdir("/proc/self/fd") if name not in others and _is_control_socket(name)
                ]
                status = status or (3 if sockets else 0)
                with world(2) as own:
                    status = status or (0 if own[1].peers[0].pid == os.getpid() else 4)
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert on_each([0, 1, 2], lambda rank: controls[rank].exchange("k", [0, 1, 2], b"%d" % rank, 5)) == {
            rank: [b"0", b"1", b"2"] for rank in range(3)
        }


def _is_control_socket(name: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{name}").startswith(("socket:", "anon_inode:[event"))
    except OSError:
        return False


def test_death_is_seen_while_a_forked_child_of_the_dead_lives_on(job: Meeting) -> None:
    program = """
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    time.sleep(60)
    """
    with process(job, 2, program) as rank, these(job, [0, 1]) as controls:
        assert rank.stdout is not None
        child = int(rank.stdout.readline())
        try:
            time.sleep(0.1)
            rank.kill()
            assert_soon(lambda: controls[1].is_gone(2), within=1)
        finally:
            os.kill(child, signal.SIGKILL)


def test_multiprocessing_children_end_without_a_word() -> None:
    program = """
    import multiprocessing
    children = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.1,)) for _ in range(2)]
    [child.start() for child in children]
    [child.join() for child in children]
    control.exchange("all", [0, 1, 2], b"", 10)
    """
    job = new_job(3, "", SECRET)
    with process(job, 0, program) as one, process(job, 2, program) as other, these(job, [1]) as controls:
        controls[0].exchange("all", [0, 1, 2], b"", 10)
        assert output(one) == output(other) == ("", "")


@pytest.mark.parametrize(
    "call", ["control.exchange('k', [0, 1], b'', 60)", "control.get('k', 60)", "control.ask('t', [0], b'', 60)"]
)
def test_ctrl_c_interrupts_a_call(call: str) -> None:
    job = new_job(2, free_address(), SECRET)
    with process(job, 1, f"print(1, flush=True)\n{call}") as child, these(job, [0]):
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = output(child)
        assert time.monotonic() - began < 2
        assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_interrupts_a_meeting(rank: int) -> None:
    job = new_job(3, free_address(), SECRET)
    argv = [sys.executable, "-c", _PRELUDE, str(rank), "3", job.key, job.address]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as child:
        time.sleep(0.7)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = output(child)
        assert time.monotonic() - began < 2
        assert err.rstrip().endswith("KeyboardInterrupt")


def test_two_hundred_ranks_meet_exchange_and_leave() -> None:
    benchmark = os.path.join(os.path.dirname(__file__), "../../../benchmarks/meeting_scale.py")
    done = subprocess.run(
        [sys.executable, benchmark, "200", "--address", free_address()],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    meeting, exchange, leaving, _ = done.stdout.splitlines()
    assert meeting.endswith("199 ABOUT, 199 ROSTER, 597 in handshakes")
    assert exchange.endswith("199 EXCHANGE, 199 EXCHANGED")
    told = re.search(r"(\d+) GONE", leaving)  # nobody is told where the hub finds that all have left
    assert told is None or int(told[1]) < 200 * 20  # of 200 x 200 that telling of each at once would take
    assert "199 LEAVE" in leaving


def test_meetings_that_fail_leave_no_files() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        for address in ("", free_address()):
            job = new_job(3, address, SECRET)
            on_each([0, 1], lambda rank: meet(replace(job, rank=rank), 0.1))  # noqa: B023
            on_each([1], lambda rank: meet(replace(job, rank=rank), 0.1))  # noqa: B023
    assert_soon(lambda: len(os.listdir("/proc/self/fd")) <= before)
