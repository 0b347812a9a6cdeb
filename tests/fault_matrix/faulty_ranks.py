"""Forks the ranks of each scenario that comes in, a line of JSON, and answers what the survivors were told."""

from __future__ import annotations

import gc
import itertools
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scenarios import TIMEOUT, Scenario

import shim
import shim.core.engines.shared_memory  # before ranks are forked
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import ShimError

ME = Caller("test", outsider="warn")
DEADLINE = 30.0  # seconds
LARGE = 4_000_000  # bytes

turns = itertools.count()
outputs: deque[weakref.ref[np.ndarray]] = deque(maxlen=1)  # the last tensor that was to be written to


def sum_up(group: ProcessGroup, tensor: np.ndarray, way: str = "now") -> None:
    work = calls.all_reduce(ME, group, tensor, tensor, ReduceOp.MAX, now=way == "now")
    if way == "started":
        work.start()
    work.wait()


def pass_on(group: ProcessGroup, empty: Callable[[int, str], np.ndarray] = np.empty) -> None:
    """Send to the next rank and receive from the one before."""
    sent = calls.send(ME, group, empty(LARGE, "uint8"), (group.rank + 1) % group.size)
    sent.start()
    received = empty(LARGE, "uint8")
    outputs.append(weakref.ref(received))
    calls.receive(ME, group, received, (group.rank - 1) % group.size).wait()
    sent.wait()


def gather(group: ProcessGroup) -> None:
    """Two ranks read each other's tensors."""
    gathered = np.empty(group.size * LARGE, np.uint8)
    outputs.append(weakref.ref(gathered))
    calls.all_gather(ME, group, gathered, np.ones(LARGE, np.uint8), now=True).wait()


def one_after_the_other(group: ProcessGroup) -> None:
    """Carry the next collective out, on parts of several chunks."""
    whole, part = np.ones(LARGE // 16 * group.size, np.uint8), np.ones(LARGE // 16, np.uint8)
    turn = next(turns)
    root = turn // 8 % group.size
    at_root = whole if group.rank == root else None
    (
        lambda: calls.broadcast(ME, group, whole, root, now=True),
        lambda: calls.reduce(ME, group, whole, whole.copy(), ReduceOp.MAX, root, now=True),
        lambda: calls.gather(ME, group, at_root, part, root, now=True),
        lambda: calls.scatter(ME, group, part, at_root, root, now=True),
        lambda: calls.all_gather(ME, group, whole, part, now=True),
        lambda: calls.reduce_scatter(ME, group, part, whole, ReduceOp.MAX, now=True),
        lambda: calls.all_to_all(ME, group, whole.copy(), whole, now=True),
        lambda: calls.all_reduce(ME, group, whole, whole, ReduceOp.MAX, now=True),
    )[turn % 8]().wait()


def make_group(group: ProcessGroup) -> None:
    made = groups.new_group(ME)
    sum_up(made, np.ones(1))
    groups.close_group(made)


WHAT: dict[str, Callable[[ProcessGroup], None]] = {
    "small": lambda group: sum_up(group, np.ones(1)),
    "small, waited": lambda group: sum_up(group, np.ones(1), "waited"),
    "small, started": lambda group: sum_up(group, np.ones(1), "started"),
    "large": lambda group: sum_up(group, np.ones(LARGE, np.uint8)),
    "large, started": lambda group: sum_up(group, np.ones(LARGE, np.uint8), "started"),
    "shared": lambda group: sum_up(group, shim.empty(LARGE, "uint8")),
    "messages": pass_on,
    "lent messages": lambda group: pass_on(group, shim.empty),
    "gathers": gather,
    "each in turn": one_after_the_other,
    "making groups": make_group,
    "meeting": lambda group: sum_up(group, np.ones(1)),
}


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(Scenario(**json.loads(line)))) + "\n")
        sys.stdout.flush()


def answer(scenario: Scenario) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder, "when")
        note.touch()
        pids, pipes = [], []
        for rank in range(scenario.size):
            reading, writing = os.pipe()
            pid = os.fork()
            if pid == 0:
                be_rank(scenario, rank, note, Path(folder).name, writing)
            os.close(writing)
            pids.append(pid)
            pipes.append(reading)
        told = {
            rank: told_by(pipe)
            for rank, pipe in enumerate(pipes)
            if rank != scenario.victim or scenario.action == "late"
        }
        hung = [rank for rank, said in told.items() if said is None]
        for pid in [pids[scenario.victim], *(pids[rank] for rank in hung)]:
            os.kill(pid, signal.SIGKILL)  # the late victim has ended, and is not yet waited for
        for pid, pipe in zip(pids, pipes, strict=True):
            os.waitpid(pid, 0)
            os.close(pipe)
        began = int(note.read_text() or 0)
    for said in told.values():
        if said is not None:
            said["milliseconds"] = (said.pop("at") - began) / 1e6
    return {"told": told, "hung": hung, "left": sockets_of(pids)}


def told_by(pipe: int) -> dict[str, Any] | None:
    until = time.monotonic() + DEADLINE
    text = b""
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(pipe, 65536)
        text += part
        if not part:
            return json.loads(text) if text else None
    return None


def sockets_of(pids: list[int]) -> list[str]:
    """Return the addresses that are left of these processes."""
    lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
    return [line for line in lines if any(f"-process-{pid}-" in line for pid in pids)]


def be_rank(scenario: Scenario, rank: int, note: Path, job: str, writing: int) -> None:
    """Take part until there is an error, tell it, and end; the victim is not to come to that."""
    try:
        if rank == scenario.victim:
            os.environ["SHIM_FAULT"] = f"{scenario.point} {scenario.action} {scenario.which}"
            os.environ["SHIM_FAULT_NOTE"] = str(note)
        os.environ["SHIM_CROSS_MEMORY"] = "1" if scenario.point == "in_cross_read" else "off"
        os.environ |= {"SHIM_RANK": str(rank), "SHIM_WORLD_SIZE": str(scenario.size), "SHIM_JOB": job}
        patient = scenario.action in ("stop", "late") or scenario.what == "meeting"
        os.write(writing, json.dumps(told_to_this_rank(scenario, TIMEOUT if patient else DEADLINE)).encode())
    except BaseException:  # nobody else will show it
        traceback.print_exc()
    finally:
        os._exit(0)


def told_to_this_rank(scenario: Scenario, timeout: float) -> dict[str, Any]:
    group: ProcessGroup | None = None
    told: dict[str, Any] = {"error": "nothing", "message": "", "ranks": ()}
    carried_out = 0
    try:
        group = groups.enter_world(ME, "test", timeout=timeout)
        for _ in range(100_000):
            WHAT[scenario.what](group)
            carried_out += 1
    except ShimError as error:
        told = {"at": time.monotonic_ns(), "error": type(error).__name__, "message": str(error)}
        told["ranks"] = getattr(error, "ranks", ())
    gc.collect()
    is_kept = any(output() is not None for output in outputs)
    again = what_a_call_raises(group)
    return {"at": time.monotonic_ns(), **told, "again": again, "is_kept": is_kept, "carried_out": carried_out}


def what_a_call_raises(group: ProcessGroup | None) -> str:
    if group is None:
        return "no group"
    try:
        calls.barrier(ME, group, now=True)
    except ShimError as error:
        return type(error).__name__
    return "nothing"


if __name__ == "__main__":
    main()
