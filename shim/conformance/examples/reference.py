"""Runs examples on the real frameworks, on this machine's CPU, beside which the frontends' verdicts are shown.

Each framework gets the world that its own launcher would give it. A rank that crashed or hangs takes its world with it, and the next
example gets a new one; so does one after an example that ended in an error.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from shim.conformance.examples.example import Example
from shim.conformance.examples.rank import Sight, see_example
from shim.conformance.examples.runner import Outcome, outcome_of
from shim.conformance.examples.verdicts import Judgement, Verdict
from shim.conformance.runner import QUIET
from shim.launch.pool import RankPool

__all__ = ["Variables", "judge_reference", "run_reference", "see_on_this_rank"]

_DEADLINE = 45.0  # seconds for one example; the first of a world imports the framework
_SCHEDULER = "import mindspore.communication as communication; communication.init()"

# What in an example's code leaves the framework in no state for another one.
_ENDING = ("destroy_", "release", "enable_static", "disable_signal")

Variables = list[dict[str, str]]  # of each rank's environment


def run_reference(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
    on_begin: Callable[[Example], None] = lambda example: None,
) -> list[Outcome]:
    """Run *examples*, which are one framework's, with that framework; tell *on_begin* and *on_outcome* of each."""
    outcomes = []
    for ranks in sorted({example.ranks for example in examples}):
        waiting = [example for example in examples if example.ranks == ranks]
        while waiting:
            with _world_of(waiting[0].framework, ranks) as (pool, variables):
                while waiting:
                    on_begin(waiting[0])
                    outcomes.append(_run(pool, waiting.pop(0), variables))
                    on_outcome(outcomes[-1])
                    if _is_spoiled(outcomes[-1]):
                        break
    return outcomes


def _run(pool: RankPool, example: Example, variables: Variables) -> Outcome:
    begin = time.perf_counter()
    answers = pool.run("shim.conformance.examples.reference:see_on_this_rank", example, variables, deadline=_DEADLINE)
    return outcome_of(example, answers, time.perf_counter() - begin)


def _is_spoiled(outcome: Outcome) -> bool:
    """Tell whether the world may be in no state for another example: an error went before, or the example ended it."""
    if any("Traceback" in text or _ended(text) for _, _, text in outcome.failures):
        return True
    return any(word in step.source for step in outcome.example.steps for word in _ENDING)


def _ended(text: str) -> bool:
    return " died: " in text or "had not answered" in text


def see_on_this_rank(example: Example, variables: Variables) -> Sight:
    """Run *example* with the framework itself on the rank that this process is, and leave its world."""
    rank = int(os.environ["RANK"])
    os.environ.update(variables[rank])
    try:
        return see_example(example, rank, substituted=False)
    finally:
        if example.framework == "torch":
            _leave_torch()


def _leave_torch() -> None:
    distributed = importlib.import_module("torch.distributed")
    if distributed.is_initialized():
        distributed.destroy_process_group()


@contextlib.contextmanager
def _world_of(framework: str, ranks: int) -> Iterator[tuple[RankPool, Variables]]:
    """Give rank processes, and what the framework's launcher would put into each one's environment."""
    ports = _free_ports(ranks + 1)
    variables: Variables = [{} for _ in range(ranks)]
    scheduler: subprocess.Popen[bytes] | None = None
    if framework == "torch":
        for one in variables:
            one |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[0])}
    elif framework == "paddle":
        variables = _paddle_variables(ports[:ranks])
    else:
        variables = _mindspore_variables(ranks, ports[0])
        environment = {**os.environ, **QUIET, **variables[0], "MS_ROLE": "MS_SCHED"}
        command = [sys.executable, "-c", _SCHEDULER]
        scheduler = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with RankPool(ranks, environment=QUIET) as pool:
            yield pool, variables
    finally:
        if scheduler is not None:
            scheduler.kill()
            scheduler.wait()


def _paddle_variables(ports: Sequence[int]) -> Variables:
    endpoints = [f"127.0.0.1:{port}" for port in ports]
    return [
        {
            "PADDLE_DISTRI_BACKEND": "gloo",
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_TRAINERS_NUM": str(len(ports)),
            "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
            "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        }
        for rank in range(len(ports))
    ]


def _mindspore_variables(ranks: int, port: int) -> Variables:
    shared = {
        "MS_WORKER_NUM": str(ranks),
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(port),
        "RANK_SIZE": str(ranks),
    }
    return [{**shared, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank), "RANK_ID": str(rank)} for rank in range(ranks)]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def judge_reference(outcome: Outcome, ours: Judgement | None) -> Judgement:
    """Judge how the real framework did: by how it ended, and, where it shows something else, by the verdict on *ours*."""
    if outcome.passed:
        return Judgement(outcome, Verdict.PASS)
    text = next((text for _, _, text in outcome.failures if _ended(text)), outcome.failures[0][2])
    reason = text.strip().splitlines()[-1]
    if " died: " in text:
        return Judgement(outcome, Verdict.CRASHES, text.strip().splitlines()[0])
    if "had not answered" in text:
        return Judgement(outcome, Verdict.HANGS, text.strip().splitlines()[0])
    if ours is not None and ours.verdict is not Verdict.PASS:
        return Judgement(outcome, ours.verdict, ours.reason)
    return Judgement(outcome, Verdict.UNSUPPORTED if "Traceback" in text else Verdict.FAIL, reason)
