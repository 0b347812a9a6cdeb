"""A rank of a job, which starts a helper: the helpers of all ranks form a world of their own.

    python3 tests/core/job/helpers_of_ranks.py RANK SIZE PORT WAY DEPTH PLACE TIMEOUT

The job meets at PORT; with PORT 0 the ranks know nothing of each other. WAY is how each rank starts its helper, which with a DEPTH
of 2 leaves the work to a helper of its own. PLACE is where the helpers meet: ``env PORT``, ``store PORT``, or a URL.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from jobs_at_one_port import by_hand

from shim.core import groups, objects
from shim.core.callers import Caller
from shim.core.job.stores import TCPStore
from shim.errors import ShimError

ME = Caller("test", input="item")


def answer_of_helper(rank: int, size: int, place: str, timeout: float) -> str:
    """Return as JSON which ranks the helper of *rank* meets, or what it is told, and after how many seconds."""
    groups.close_world()  # the parent's, in a copy
    began = time.monotonic()
    how: dict[str, object] = {"rank": rank, "world_size": size, "timeout": timeout}
    store = None
    try:
        if place.startswith("store"):
            store = how["store"] = TCPStore("127.0.0.1", int(place.partition(" ")[2]), size, rank == 0, timeout)
        elif place.startswith("env"):
            os.environ.update(by_hand(rank, size, place))
            del how["rank"], how["world_size"]
        else:
            how["init_method"] = place
        world = groups.enter_world(ME, "test", **how)  # type: ignore[arg-type]
        said: object = objects.all_gather(ME, world, rank)
    except ShimError as error:
        said = str(error)
        time.sleep(0.5 if rank == 0 and store else 0)  # the other one reads what the store has for it
    finally:
        groups.close_world()
    return json.dumps([said, time.monotonic() - began])


def run_helper(way: str, depth: int, rank: int, size: int, place: str, timeout: float) -> str:
    """Return the answer of a helper of this process, or of a helper's helper."""
    if depth == 0:
        return answer_of_helper(rank, size, place, timeout)
    rest = (depth - 1, rank, size, place, timeout)
    if way == "program":
        words = [sys.executable, __file__, "helper", way, *map(str, rest)]
        return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
    reader, writer = multiprocessing.Pipe(duplex=False)
    if way == "os.fork":
        if os.fork() == 0:
            writer.send(run_helper(way, *rest))
            os._exit(0)
    else:
        multiprocessing.get_context(way).Process(target=send_answer, args=(writer, way, *rest)).start()
    writer.close()
    answer: str = reader.recv()
    return answer


def send_answer(writer: object, *arguments: object) -> None:
    writer.send(run_helper(*arguments))  # type: ignore[attr-defined, arg-type]


def main(words: Sequence[str]) -> None:
    if words[0] == "helper":
        way, depth, rank, size, place, timeout = words[1:]
        sys.stdout.write(run_helper(way, int(depth), int(rank), int(size), place, float(timeout)))
        return
    rank, size, port, way, depth, place, timeout = words
    if port != "0":
        os.environ.update(by_hand(int(rank), int(size), f"env {port}"))
        groups.enter_world(ME, "test", timeout=60)
    sys.stdout.write(run_helper(way, int(depth), int(rank), int(size), place, float(timeout)) + "\n")
    sys.stdout.flush()
    sys.stdin.read()  # the other ranks' helpers may ask this process


if __name__ == "__main__":
    main(sys.argv[1:])
