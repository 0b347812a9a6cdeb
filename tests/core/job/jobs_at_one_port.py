"""Several jobs whose ranks all say the same port begin at the same moment, again and again: does a rank meet another job's?

    python3 tests/core/job/jobs_at_one_port.py --starts 200 --jobs 3 --ranks 3 --way spawn

Each job is a program that waits for a line, starts its ranks in one of the ways below, and answers with what each rank
gathered: the jobs of the ranks it met, or the error that it was told.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from shim.core import groups, objects
from shim.core.callers import Caller
from shim.core.job.stores import FileStore
from shim.errors import ShimError

ME = Caller("test", input="item")
TIMEOUT = 60.0  # seconds, in which ranks meet
LIMIT = 90.0  # seconds, in which a rank answers


def be_rank(job: str, rank: int, size: int, place: str) -> str:
    """Return the jobs of the ranks that this one meets, or what it is told."""
    try:
        if place.startswith("store"):
            store = FileStore(place.partition(" ")[2], -1, TIMEOUT)
            world = groups.enter_world(ME, "test", rank=rank, world_size=size, store=store, timeout=TIMEOUT)
        elif place.startswith("env"):
            os.environ.update(by_hand(rank, size, place))
            world = groups.enter_world(ME, "test", timeout=TIMEOUT)
        else:
            world = groups.enter_world(ME, "test", rank=rank, world_size=size, init_method=place, timeout=TIMEOUT)
        part = groups.new_group(ME, [0, 1])
        met = objects.all_gather(ME, world, job)
        if rank < 2:
            met += objects.all_gather(ME, part, job)
    except ShimError as error:
        return f"told: {error}"
    finally:
        groups.close_world()
    return f"met: {' '.join(sorted(set(met)))}"


def by_hand(rank: int, size: int, place: str) -> dict[str, str]:
    port = place.partition(" ")[2]
    return {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": str(size)}


def answer_on(answer: Connection, job: str, rank: int, size: int, place: str) -> None:
    answer.send(be_rank(job, rank, size, place))


def answer_on_each(answers: list[Connection]) -> list[str]:
    """Return what each rank answers. Raises EOFError where one ends without an answer."""
    for answer in answers:
        if not answer.poll(LIMIT):
            raise TimeoutError(f"a rank has not answered in {LIMIT:g} s")
    return [answer.recv() for answer in answers]


def by_multiprocessing(method: str, has_rank_0: bool = False) -> Callable[[str, int, str], list[str]]:
    """Return what starts a job's ranks with multiprocessing; rank 0 can be the program itself."""

    def start(job: str, size: int, place: str) -> list[str]:
        context = multiprocessing.get_context(method)
        answers, processes = [], []
        for rank in range(1 if has_rank_0 else 0, size):
            reader, writer = context.Pipe(duplex=False)
            processes.append(context.Process(target=answer_on, args=(writer, job, rank, size, place)))
            processes[-1].start()
            writer.close()
            answers.append(reader)
        said = [be_rank(job, 0, size, place)] if has_rank_0 else []
        said += answer_on_each(answers)
        for process in processes:
            process.join(LIMIT)
        return said

    return start


def by_fork(job: str, size: int, place: str) -> list[str]:
    """Start a job's ranks as plain copies of this process."""
    answers = []
    for rank in range(size):
        reader, writer = multiprocessing.Pipe(duplex=False)
        if os.fork() == 0:
            answer_on(writer, job, rank, size, place)
            os._exit(0)
        writer.close()
        answers.append(reader)
    said = answer_on_each(answers)
    for _ in answers:
        os.wait()
    return said


def by_program(job: str, size: int, place: str) -> list[str]:
    """Start each rank as a program, which finds in its environment who it is."""
    command = [sys.executable, __file__, "rank", job, place]
    processes = [
        subprocess.Popen(command, env=os.environ | by_hand(rank, size, place), stdout=subprocess.PIPE, text=True)
        for rank in range(size)
    ]
    return [process.communicate(timeout=LIMIT)[0].strip() for process in processes]


WAYS: dict[str, Callable[[str, int, str], list[str]]] = {
    "fork": by_multiprocessing("fork"),
    "forkserver": by_multiprocessing("forkserver"),
    "spawn": by_multiprocessing("spawn"),
    "parent": by_multiprocessing("fork", has_rank_0=True),
    "os.fork": by_fork,
    "program": by_program,
}


def run_job(job: str, size: int, way: str) -> None:
    """Start ranks for each line that comes, which says where they meet."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(WAYS[way](job, size, line.strip())) + "\n")
        sys.stdout.flush()


def count_outcomes(starts: int, jobs: int, ranks: int, way: str, place: str = "env") -> Counter[str]:
    """Return how often a job's ranks met each other alone, were all told of another job, or did anything else."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, socket.socket() as reserved, ExitStack() as stack:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        names = [f"job{number}" for number in range(jobs)]
        programs = [stack.enter_context(program_of(name, ranks, way)) for name in names]
        for start in range(starts):
            where = {
                "env": f"env {port}",
                "tcp": f"tcp://localhost:{port}",
                "file": f"file://{folder}/meeting",
                "store": f"store {Path(folder) / f'store{start}'}",
            }[place]
            for program in programs:
                print(where, file=program.stdin, flush=True)
            for name, program in zip(names, programs, strict=True):
                said = answer_of(program)
                is_apart = said == [f"met: {name}"] * ranks
                is_told = all(one.startswith("told: ") and "another job" in one for one in said)
                outcomes["apart" if is_apart else "told" if is_told else f"{name}: {said}"] += 1
    return outcomes


@contextmanager
def program_of(job: str, size: int, way: str) -> Iterator[subprocess.Popen[str]]:
    """Start a job's program. All that it has started ends with the block, however that ends."""
    command = [sys.executable, __file__, "job", job, str(size), way]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as program:
        try:
            yield program
        finally:
            os.killpg(program.pid, signal.SIGKILL)


def answer_of(program: subprocess.Popen[str]) -> list[str]:
    """Return what the ranks of *program* answer to its last line. Raises an error where it does not answer in time."""
    if not select.select([program.stdout], [], [], 2 * LIMIT)[0]:
        raise TimeoutError(f"a job has not answered in {2 * LIMIT:g} s")
    line = program.stdout.readline()
    if not line:
        raise EOFError("a job has ended without an answer; its error stands above")
    return json.loads(line)


if __name__ == "__main__":
    if sys.argv[1] == "job":
        run_job(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1] == "rank":
        sys.stdout.write(be_rank(sys.argv[2], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[3]))
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--starts", type=int, default=200)
        parser.add_argument("--jobs", type=int, default=2)
        parser.add_argument("--ranks", type=int, default=2)
        parser.add_argument("--way", choices=WAYS, default="spawn")
        parser.add_argument("--place", choices=["env", "tcp", "file", "store"], default="env")
        chosen = parser.parse_args()
        found = count_outcomes(chosen.starts, chosen.jobs, chosen.ranks, chosen.way, chosen.place)
        told = f"{chosen.starts} starts of {chosen.jobs} jobs of {chosen.ranks} ranks by {chosen.way}"
        sys.stdout.write(f"{told}, {chosen.place}: {dict(found)}\n")
        sys.exit(any(outcome not in ("apart", "told") for outcome in found))
