"""The steps of a first run, each a program of its own: ``python first_steps.py STEP KIND DEVICE MAY_BE_A_TREE``.

Its starter has set the variables that say how long it may take, and to which file it writes what it finds. The steps are
listed in first_run.py.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from findings import Findings
from step_processes import SECONDS

HERE = Path(__file__).resolve().parent
_CASE = 20.0  # seconds at least for a case on the ranks; the first one has imports and CUDA's start in it


class Order(NamedTuple):
    """What a step is to be done with: tensors of *kind* on *device*, in *seconds*. Shim *may be a tree* that was not installed."""

    kind: str
    device: str
    seconds: float
    may_be_a_tree: bool


def _versions(findings: Findings, order: Order) -> None:
    import machine_facts

    machine_facts.find_versions(findings, order.may_be_a_tree)
    if order.device == "cuda":
        machine_facts.find_devices(findings)


def _libraries(findings: Findings, order: Order) -> None:
    import machine_facts

    machine_facts.find_libraries(findings, order.kind)


def _driver(findings: Findings, order: Order) -> None:
    if order.kind:
        from device_kinds import kind_named

        kind_named(order.kind)
    from driver_checks import check_driver

    check_driver(findings)


def _ipc(findings: Findings, order: Order) -> None:
    library = "libcuda.so.1"
    if order.kind:
        from device_kinds import kind_named

        from shim.core.engines.nccl import driver

        kind_named(order.kind)
        library = driver.loaded("libcuda.so")[0]
    done = subprocess.run([sys.executable, HERE / "ipc_by_ctypes.py", library], stdout=subprocess.PIPE, check=True)
    findings.figures |= json.loads(done.stdout)


def _kernels(findings: Findings, order: Order) -> None:
    from device_kinds import kind_named
    from kernel_checks import check_kernels

    kind_named(order.kind)
    check_kernels(findings)


class _Ranks:
    """Ranks that carry out cases, one after the other; where a rank dies or is late, new ones go on."""

    def __init__(self, findings: Findings, order: Order, size: int, environment: dict[str, str] | None = None) -> None:
        from shim.launch.pool import RankPool

        self._findings, self._deadline = findings, max(_CASE, order.seconds / 2)
        self._pool = RankPool(size, environment)

    def __enter__(self) -> _Ranks:
        self._pool.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.close()

    def carry_out(
        self, case: str, target: str, *arguments: Any, told_by_rank_0: bool = True, lost: int = 0
    ) -> list[Any]:
        """Call *target* on all ranks; note under *case* what rank 0 returns. The last ranks, *lost* of them, may die meanwhile.

        Returns what the ranks return, or nothing where one failed.
        """
        began = time.monotonic()
        outcomes = self._pool.run(target, *arguments, deadline=self._deadline)
        errors = [f"rank {one.rank}: {one.error}" for one in outcomes[: len(outcomes) - lost] if one.error is not None]
        if errors:
            self._pool.close()
            missing = next((error for error in errors if "NotThereError: " in error), "")
            if missing:
                from device_kinds import NotThereError

                raise NotThereError(missing.rpartition("NotThereError: ")[2].splitlines()[0])
            self._findings.fail(case, "\n\n".join(errors))
            return []
        self._findings.figures.setdefault("seconds", {})[case] = round(time.monotonic() - began, 2)
        if told_by_rank_0 and outcomes[0].value is not None:
            self._findings.figures[case] = outcomes[0].value
        self._findings.keep()
        return [one.value for one in outcomes]


def _drawn(findings: Findings, order: Order, size: int, calls: int, engine: str) -> None:
    from drawn_calls import NAMES

    with _Ranks(findings, order, size) as ranks:
        for name in NAMES:
            ranks.carry_out(name, "rank_checks:draw_calls", order.kind, name, calls, engine, told_by_rank_0=False)
    findings.found["calls of each"] = calls


def _nccl(findings: Findings, order: Order) -> None:
    from rank_checks import BY_NCCL

    _drawn(findings, order, 1, 4, BY_NCCL)


def _table(findings: Findings, order: Order) -> None:
    from rank_checks import BY_NCCL

    _drawn(findings, order, 1, 40, BY_NCCL)


def _one_device(findings: Findings, order: Order) -> None:
    from rank_checks import ON_ONE_DEVICE

    _drawn(findings, order, 2, 30, ON_ONE_DEVICE)


def _cycles(findings: Findings, order: Order) -> None:
    with _Ranks(findings, order, 1) as ranks:
        ranks.carry_out("by NCCL", "rank_checks:come_and_go", order.kind, 100, _CASE - 6.0)
    with _Ranks(findings, order, 2) as ranks:
        ranks.carry_out("two ranks on one device", "rank_checks:come_and_go", order.kind, 20, math.inf)


def _capture(findings: Findings, order: Order) -> None:
    with _Ranks(findings, order, 1) as ranks:
        for name, is_asynchronous in (("synchronous", False), ("asynchronous", True)):
            ranks.carry_out(f"{name}, replayed", "rank_checks:capture", order.kind, is_asynchronous)
    with _Ranks(findings, order, 2) as ranks:
        ranks.carry_out("refused where ranks share the device", "rank_checks:capture_where_ranks_share", order.kind)


def _two_ranks(findings: Findings, order: Order) -> None:
    from rank_checks import ON_ONE_DEVICE

    _drawn(findings, order, 2, 2, ON_ONE_DEVICE)
    with _Ranks(findings, order, 2) as ranks:
        ranks.carry_out("messages at once", "rank_checks:exchange_messages", order.kind)
        ranks.carry_out("a killed rank", "rank_checks:lose_the_other", order.kind, lost=1)


def _streams(findings: Findings, order: Order) -> None:
    with _Ranks(findings, order, 1) as ranks:
        ranks.carry_out("synchronous", "rank_checks:order_on_stream", order.kind, False)
        ranks.carry_out("asynchronous", "rank_checks:order_on_stream", order.kind, True)
        ranks.carry_out("milliseconds of a call that overlaps", "rank_checks:overlap", order.kind)


def _documents(findings: Findings, order: Order) -> None:
    """Run all cases, each with as many ranks as its document has: 2 or 4."""
    from documents_on_devices import cases_for, is_refusal

    is_on_host = order.device == "cpu"
    # Paddle's frontend takes gloo where Paddle's own device is no GPU, which carries tensors through host memory.
    environment = {} if is_on_host else {"PADDLE_DISTRI_BACKEND": "nccl"}
    passed = served = 0
    cases = cases_for(order.kind)
    for size in sorted({case.ranks for case in cases}):
        with _Ranks(findings, order, size, environment) as ranks:
            for case in (case for case in cases if case.ranks == size):
                arguments = (case.document, case.name, order.kind, is_on_host)
                seen = ranks.carry_out(case.title, "documents_on_devices:see", *arguments, told_by_rank_0=False)
                differences = case.judge({rank: arrays for rank, (arrays, _) in enumerate(seen)})
                if differences:
                    findings.fail(case.title, "\n".join(f"rank {one.rank}: {one.details}" for one in differences))
                elif seen:
                    passed += 1
                    served += any("for tensors on cuda: engine nccl" in told for _, told in seen)
                elif is_refusal(order.kind, findings.failed[case.title]):
                    findings.refused[case.title] = findings.failed.pop(case.title)
    findings.figures |= {"cases": len(cases), "passed": passed, "of these by the engine for CUDA": served}


def _measure(findings: Findings, order: Order) -> None:
    """Run the two measuring programs, and keep what they print."""
    run = [sys.executable, "-m", "shim", "run", "-n", "2", str(HERE / "ranks_on_one_gpu.py")]
    programs = {"ranks on one GPU": [*run, "--device", "cpu"] if order.device == "cpu" else run}
    if order.device == "cuda":
        import torch
        from device_kinds import NotThereError

        if not torch.cuda.is_available():
            raise NotThereError(f"torch {torch.__version__} has no CUDA here")
        programs["calls of one rank"] = [sys.executable, str(HERE / "calls_of_one_rank.py")]
    for name, command in programs.items():
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=order.seconds)
        if done.returncode:
            findings.fail(name, f"{done.stdout}{done.stderr}\nit ended with status {done.returncode}")
        findings.figures[name] = done.stdout.strip().splitlines()
        findings.keep()


def _cpu(findings: Findings, order: Order) -> None:
    from cpu_collectives import measure

    measure(findings, order.seconds)


STEPS: dict[str, Callable[[Findings, Order], None]] = {
    step.__name__.removeprefix("_"): step
    for step in (
        _versions, _libraries, _driver, _ipc, _kernels, _nccl, _cycles, _capture, _two_ranks, _streams, _table, _one_device,
        _documents, _measure, _cpu,
    )
}  # fmt: skip


def main() -> int:
    step, kind, device, may_be_a_tree = sys.argv[1:]
    order = Order(kind, device, float(os.environ[SECONDS]), may_be_a_tree == "yes")
    faulthandler.enable()
    faulthandler.dump_traceback_later(order.seconds - 1.0)
    if device == "fake":
        sys.path += [str(HERE.parent), str(HERE.parent / "core" / "engines" / "nccl")]
    from device_kinds import NotThereError

    findings = Findings()
    try:
        STEPS[step](findings, order)
    except NotThereError as missing:
        findings.skip(str(missing))
        return 0
    findings.keep()
    return 1 if findings.failed else 0


if __name__ == "__main__":
    sys.exit(main())
