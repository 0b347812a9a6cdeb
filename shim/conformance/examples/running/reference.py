"""Runs examples on the real frameworks, on this machine's CPU, beside which the frontends' verdicts are shown.

Each example finds the framework as it is after its import, and the world that the framework's own launcher would give it.
"""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

from shim.conformance.examples.adapting import free_ports
from shim.conformance.examples.example import Example
from shim.conformance.examples.running.rank import Sight, see_example
from shim.conformance.examples.running.runner import Outcome, outcome_of, run_in_pools
from shim.launch.endings import dying_with
from shim.launch.pool import RankPool

_DEADLINE = 90.0  # seconds for one example, also where other things keep the machine busy; gloo gives up after 30

Variables = list[dict[str, str]]  # of each rank's environment


def run_reference(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
    on_begin: Callable[[Example], None] = lambda example: None,
) -> list[Outcome]:
    """Run *examples* with their frameworks themselves; tell *on_begin* and *on_outcome* of each."""
    target = "shim.conformance.examples.running.reference:see_on_this_rank"
    return run_on_frameworks(target, examples, on_outcome, on_begin)


def run_on_frameworks(
    target: str,
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None],
    on_begin: Callable[[Example], None],
) -> list[Outcome]:
    """Have *target* run each of *examples* on its ranks, given what their framework's launcher would set; tell of each."""
    return run_in_pools(examples, partial(_run, target), False, on_outcome, on_begin)


def _run(target: str, pool: RankPool, example: Example) -> Outcome:
    begin = time.perf_counter()
    variables = _variables_of(example.framework, pool.size)
    answers = pool.run(target, example, variables, deadline=_DEADLINE)
    return outcome_of(example, answers, time.perf_counter() - begin)


def see_on_this_rank(example: Example, variables: Variables) -> Sight:
    """Run *example* with the framework itself on the rank that this process is."""
    rank = enter(example.framework, variables)
    return see_example(example, rank, substituted=False)


def enter(framework: str, variables: Variables) -> int:
    """Make this process, a copy for one run, what the framework's launcher would make of it, and return its rank."""
    rank = int(os.environ["RANK"])
    os.environ.update(variables[rank])
    if framework == "mindspore" and rank == 0:
        _start_scheduler()
    return rank


def _start_scheduler() -> None:
    """Start what MindSpore's ranks meet at: a copy of this process, which has MindSpore imported, and that ends with it."""
    ends_with_this = dying_with(os.getpid())
    if os.fork() > 0:
        return
    ends_with_this()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(nowhere, standard)
    os.environ["MS_ROLE"] = "MS_SCHED"
    try:
        importlib.import_module("mindspore.communication").init()
        signal.pause()
    finally:
        os._exit(1)


def _variables_of(framework: str, ranks: int) -> Variables:
    """Return what the framework's launcher would put into each rank's environment."""
    ports = free_ports(ranks)
    if framework == "torch":
        return [{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[0])} for _ in range(ranks)]
    return _paddle_variables(ports) if framework == "paddle" else _mindspore_variables(ranks, ports[0])


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
