"""``shim rehearse``: programs whose ranks run alone, what their calls return, and which mistakes are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

RANKS = 8
DEADLINE = 120.0  # seconds

PROGRAM = """
import os, sys
import numpy as np
import shim.frontends.torch.distributed as dist

dist.init_process_group()
rank, size, wrong = dist.get_rank(), dist.get_world_size(), len(sys.argv) > 1
mine = None
for first in range(0, size, 4):
    group = dist.new_group(list(range(first, first + 4)))
    mine = group if first <= rank < first + 4 else mine
{calls}
dist.barrier()
"""
RIGHT = "dist.all_reduce(np.ones(4))"

# What rank 5, or a few, do otherwise, where the others make the call that stands before.
MISTAKES = {
    "the shape": (RIGHT, "dist.all_reduce(np.ones(5))"),
    "the dtype": (RIGHT, "dist.all_reduce(np.ones(4, np.float32))"),
    "the reduction": (RIGHT, "dist.all_reduce(np.ones(4), op=dist.ReduceOp.MAX)"),
    "the operation": (RIGHT, "dist.barrier()"),
    "the root": ("dist.broadcast(np.ones(4), 0)", "dist.broadcast(np.ones(4), 1)"),
    "the members of the new group": ("dist.new_group([0, 1])", "dist.new_group([0, 2])"),
    "what comes after the barrier": ("dist.barrier()", "dist.new_group([5])"),
    "the sizes of the parts": (
        "dist.all_to_all_single(np.ones(size), np.ones(size), [1] * size, [1] * size)",
        "dist.all_to_all_single(np.ones(size), np.ones(size), [1] * size, [2, 0] + [1] * (size - 2))",
    ),
}


@pytest.fixture
def rehearse(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(calls: str, *more: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        program = tmp_path / "program.py"
        program.write_text(PROGRAM.format(calls=textwrap.dedent(calls)))
        return subprocess.run(
            [sys.executable, "-m", "shim", "rehearse", "-n", str(RANKS), *options, str(program), *more],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    return run


@pytest.mark.parametrize("rank", ["1", "2"])
def test_calls_return_what_there_would_be_if_all_ranks_passed_the_same(
    rank: str, rehearse: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = rehearse(
        """
        def expect(seen, wanted): assert (np.asarray(seen) == wanted).all(), (seen, wanted)
        for op, wanted in (("SUM", 3 * size), ("AVG", 3), ("MAX", 3), ("MIN", 3), ("PRODUCT", 3 ** size)):
            total = np.full((2, 3), 3.0).T
            dist.all_reduce(total, op=getattr(dist.ReduceOp, op))
            expect(total, wanted)
        bits = np.full(2, 5)
        dist.all_reduce(bits, op=dist.ReduceOp.BXOR)
        expect(bits, 0)
        total = np.full(2, 3.0)
        dist.reduce(total, 1)
        expect(total, 3 * size if rank == 1 else 3)
        gathered = np.zeros(2 * size)
        dist.all_gather_single(gathered, np.array([rank, 7.0]))
        expect(gathered, [rank, 7] * size)
        part = np.ones(2)
        dist.reduce_scatter_single(part, np.repeat(np.arange(float(size)), 2))
        expect(part, rank * size)
        dist.scatter(part, [np.full(2, 4.0 + one) for one in range(size)] if rank == 2 else None, 2)
        expect(part, 6 if rank == 2 else 0)
        received = np.ones(size)
        dist.all_to_all_single(received, np.arange(float(size)))
        expect(received, rank)
        work = dist.all_reduce(part := np.ones(3), group=mine, async_op=True)
        work.wait()
        expect(part, 4)
        other = rank ^ 1
        if rank % 2:
            dist.send(np.ones(3), other)
            assert dist.recv(part, other) == other
            expect(part, 0)
        else:
            dist.recv(part)
            dist.send(np.ones(3), other)
        every = [None] * size
        dist.all_gather_object(every, {"rank": rank})
        assert every == [{"rank": rank}] * size
        items = [{"rank": rank}]
        dist.broadcast_object_list(items, 3)
        assert items == [{"rank": rank}]
        assert int(os.environ["LOCAL_RANK"]) == rank % 4 and int(os.environ["LOCAL_WORLD_SIZE"]) == 4
        """,
        options=("--nproc-per-node", "4", "--ranks", rank, "--to", str(tmp_path / "kept")),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 8 ranks rehearsed" in done.stdout
    assert done.stdout.endswith("no mistake was found.\n")
    assert len(list((tmp_path / "kept").glob("rank*.shimtrace"))) == 1


def test_small_data_is_that_of_the_other_ranks(rehearse: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = rehearse(
        """
        counts = np.arange(size) + rank
        splits = np.zeros(size, int)
        dist.all_to_all_single(splits, counts)
        assert splits.tolist() == [rank + one for one in range(size)]
        dist.all_to_all_single(np.zeros(sum(splits)), np.ones(sum(counts)), splits.tolist(), counts.tolist())
        total = np.array([rank])
        dist.all_reduce(total)
        dist.all_reduce(total[:0] if total < 28 else np.ones(total))
        part = np.zeros(1, int)
        dist.reduce_scatter_single(part, counts)
        assert part == rank * size + 28
        dist.scatter(part, list(np.split(counts, size)) if rank == 5 else None, 5)
        assert part == 5 + rank
        if rank:
            dist.recv(part, rank - 1)
            assert part == rank - 1
        if rank + 1 < size:
            dist.send(np.array([rank]), rank + 1)
        assert dist.recv(part) == 7 if rank == 3 else rank != 7 or dist.send(np.array([9]), 3) is None
        every, items, mine = [None] * size, [{"rank": rank}], [None]
        dist.all_gather_object(every, "x" * rank)
        assert every == ["x" * one for one in range(size)]
        dist.broadcast_object_list(items, 3)
        assert items == [{"rank": 3}]
        dist.scatter_object_list(mine, every if rank == 6 else None, 6)
        assert mine == ["x" * rank]
        dist.send_object_list([rank, {}], 0) if rank == 4 else None
        if rank == 0:
            items = [None, None]
            dist.recv_object_list(items, 4)
            assert items == [4, {}]
        store = dist.group.WORLD.get_group_store()
        store.set(f"from {rank}", f"{rank}")
        assert store.get(f"from {7 - rank}") == str(7 - rank).encode()
        assert (store.add("members", 1), store.add("members", 0)) == (rank + 1, size)
        """
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith(" passes: no mistake was found.\n")


def test_values_of_a_real_job(rehearse: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    calls = """
    counts = np.arange(size) + (99 if "SHIM_REHEARSE" not in os.environ else 0)
    splits = np.zeros(size, int)
    dist.all_to_all_single(splits, counts)
    print(splits.tolist())
    """
    rehearse(calls)  # which writes the program
    job = tmp_path / "job"
    subprocess.run(
        [sys.executable, "-m", "shim", "run", "-n", str(RANKS), str(tmp_path / "program.py")],
        env={**os.environ, "SHIM_TRACE": str(job), "SHIM_TRACE_DIGESTS": "1", "SHIM_TRACE_VALUES": str(job / "values")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for ranks in ("2", "0-7"):
        kept = tmp_path / f"ranks {ranks}"
        done = rehearse(calls, options=("--ranks", ranks, "--values", str(job), "--to", str(kept)))
        assert done.returncode == 0, done.stdout
        assert (kept / "rank2.out").read_text() == "[101, 101, 2, 101, 101, 101, 101, 101]\n"


@pytest.mark.parametrize("what", MISTAKES)
def test_a_call_that_differs_is_found_with_its_line(
    what: str, rehearse: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    right, wrong = MISTAKES[what]
    calls = f"dist.all_reduce(np.ones(2))\nif rank == 5:\n    {wrong}\nelse:\n    {right}"
    found = json.loads(rehearse(calls, options=("--json",)).stdout)
    first = found["disagreements"][0]
    assert (first["what"], first["group"]) == (what, "world")
    assert sorted(map(int, first["calls"])) == list(range(RANKS))
    places = {rank: line.rpartition(":")[2] for rank, line in first["calls"].items()}
    assert {place for rank, place in places.items() if rank != "5"} == {"16"}
    assert places["5"] == "14"


def test_ranks_that_wait_for_ever_are_told_with_their_circle(
    rehearse: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = rehearse(
        """
        if rank != 6: dist.broadcast(np.ones(3), 0)
        dist.all_reduce(np.ones(3), group=mine)
        """
    )
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert told[0] == "8 ranks would wait for ever:"
    assert "ranks 0-5, 7, in group 'world': broadcast(float64 [3], root 0), at " in told[1]
    assert told[1].endswith("program.py:13, for rank 6")
    assert "rank 6, in group 'group_2': all_reduce(float64 [3], SUM), at " in told[2]
    assert told[2].endswith("for ranks 4-5, 7")
    assert told[3].startswith("  They wait in a circle: rank 4 waits in broadcast(")


@pytest.mark.parametrize(
    ("calls", "circle", "lost"),
    [
        ("dist.recv(np.ones(3), rank ^ 1); dist.send(np.ones(3), rank ^ 1)", [0, 1], 0),
        ("dist.send(np.ones(900), rank ^ 1); dist.recv(np.ones(900), rank ^ 1)", [0, 1], 0),
        ("dist.send(np.ones(3), rank ^ 1); dist.recv(np.ones(3), rank ^ 1)", [], 0),
        ("dist.isend(np.ones(900), rank ^ 1); dist.recv(np.ones(900), rank ^ 1)", [], 0),
        ("rank == 2 and dist.isend(np.ones(900), 3)", [], 1),
        ("rank == 2 and dist.irecv(np.ones(900), 3)", [], 1),
    ],
)
def test_messages_that_wait_for_each_other_or_for_none(
    calls: str, circle: list[int], lost: int, rehearse: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    found = json.loads(rehearse(calls, options=("--json",)).stdout)
    assert (found["circle"], len(found["lost"])) == (circle, lost)
    assert found["is_right"] == (not circle and not lost)


def test_a_message_of_another_size(rehearse: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = rehearse("if rank == 1: dist.send(np.ones(3), 2)\nif rank == 2: dist.recv(np.ones(4), 1)")
    assert "The ranks disagree on the size or dtype in a message in group 'world':" in done.stdout


def test_a_rank_that_ends_early_and_one_that_fails(rehearse: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = rehearse("if rank == 3: sys.exit()\nif rank == 4: raise ValueError('no data')")
    assert done.returncode == 1
    assert "rank 4: the program ended with status 1; rank 4 wrote last:" in done.stdout
    assert "  ValueError: no data" in done.stdout
    assert "for ranks 3-4\n" in done.stdout
    assert "The programs of ranks 3-4 ended without coming there." in done.stdout


def test_a_group_that_not_all_of_its_members_create(
    rehearse: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = rehearse(
        "if rank != 3: dist.new_group([2, 3, 4], use_local_synchronization=True) if rank in (2, 4) else None"
    )
    assert done.returncode == 1
    assert "of ranks 2-4: created by ranks 2, 4, and not by rank 3" in done.stdout


def test_only_some_ranks(rehearse: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    wrong = "if rank == 5: dist.barrier()"
    done = rehearse(wrong, options=("--ranks", "0-3,7"))
    assert done.returncode == 0
    assert done.stdout == (
        "5 of 8 ranks rehearsed: 15 calls in 3 groups; what the others would have called was not compared: no mistake was found.\n"
    )


def test_a_rank_that_does_not_end(rehearse: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = rehearse("while rank == 2: pass", options=("--timeout", "2"))
    assert "rank 2: the program did not end in time; rank 2 wrote last:" in done.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-n", "0", "program.py"), "greater than or equal to 1, got '0'"),
        (("-n", "4", "absent.py"), "there is no program 'absent.py'"),
        (("-n", "4", "--ranks", "3-4", __file__), "ranks must be in 0..3, got '3-4'"),
        (("-n", "4", "--ranks", "1,x", __file__), "ranks are numbers and spans such as 0-15,1023, got '1,x'"),
    ],
)
def test_a_wrong_command_line(options: tuple[str, ...], told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shim", "rehearse", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert told in " ".join(done.stderr.replace("│", " ").split())
