"""Runs examples on the real frameworks, on this machine's CPU, beside which the frontends' verdicts are shown.

Each example finds the framework as it is after its import, and the world that the framework's own launcher would give it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from shim.conformance.examples.example import Example
from shim.conformance.examples.rank import Sight, see_example
from shim.conformance.examples.runner import Outcome, outcome_of, run_in_pools
from shim.conformance.examples.verdicts import Judgement, Verdict
from shim.conformance.runner import QUIET
from shim.launch.pool import RankPool

__all__ = ["Variables", "judge_reference", "run_reference", "see_on_this_rank"]

_DEADLINE = 45.0  # seconds for one example; MindSpore's scheduler is started anew for each
_SCHEDULER = "import mindspore.communication as communication; communication.init()"

Variables = list[dict[str, str]]  # of each rank's environment


def run_reference(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
    on_begin: Callable[[Example], None] = lambda example: None,
) -> list[Outcome]:
    """Run *examples* with their frameworks themselves; tell *on_begin* and *on_outcome* of each."""
    return run_in_pools(examples, _run, False, on_outcome, on_begin)


def _run(pool: RankPool, example: Example) -> Outcome:
    begin = time.perf_counter()
    target = "shim.conformance.examples.reference:see_on_this_rank"
    with _world_of(example.framework, pool.size) as variables:
        answers = pool.run(target, example, variables, deadline=_DEADLINE)
    return outcome_of(example, answers, time.perf_counter() - begin)


def _ended(text: str) -> bool:
    return " died: " in text or "had not answered" in text or "had not ended" in text


def see_on_this_rank(example: Example, variables: Variables) -> Sight:
    """Run *example* with the framework itself on the rank that this process is."""
    rank = int(os.environ["RANK"])
    os.environ.update(variables[rank])
    return see_example(example, rank, substituted=False)


@contextlib.contextmanager
def _world_of(framework: str, ranks: int) -> Iterator[Variables]:
    """Give what the framework's launcher would put into each rank's environment; see to what else it would start."""
    ports = _free_ports(ranks)
    if framework == "torch":
        yield [{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[0])} for _ in range(ranks)]
    elif framework == "paddle":
        yield _paddle_variables(ports)
    else:
        variables = _mindspore_variables(ranks, ports[0])
        environment = {**os.environ, **QUIET, **variables[0], "MS_ROLE": "MS_SCHED"}
        command = [sys.executable, "-c", _SCHEDULER]
        scheduler = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield variables
        finally:
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
    if _ended(text):
        return Judgement(outcome, Verdict.HANGS, text.strip().splitlines()[0])
    if ours is not None and ours.verdict is not Verdict.PASS:
        return Judgement(outcome, ours.verdict, ours.reason)
    return Judgement(outcome, Verdict.UNSUPPORTED if "Traceback" in text else Verdict.FAIL, reason)
