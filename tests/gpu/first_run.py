"""The first minutes on a machine with a GPU: every step in a process of its own, and a line of JSON for each.

    python first_run.py                                      # torch, CuPy or both, in eight minutes at most
    python first_run.py --only driver ipc --out found.jsonl  # some steps; the lines go to a file as well
    python first_run.py --device fake --minutes 20           # on the tests' own driver, on any machine with a compiler
    python first_run.py --device cpu                         # what needs no device

Copy this folder to the machine, where an installed shim is taken; neither pytest nor the rest of the source tree is needed.
For ``--device fake``, tests/core/engines/nccl and tests/dlpack_structures.py have to lie as they do in the tree: in
``../core/engines/nccl`` and in the folder above. Nothing ends the run early; the exit status is 0 if no step failed or was
too late. A step has its time as the table says, or in proportion where more than eight minutes are given.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from step_processes import StepProcess

HERE = Path(__file__).resolve().parent
MINUTES = 8.0  # in which all steps fit
_LEAST = 3.0  # seconds that a step is begun for
_FEW_PROCESSORS = 4
KINDS = {"cuda": ("torch", "cupy"), "fake": ("fake",), "cpu": ("torch", "numpy")}
Tell = Callable[[dict[str, Any]], None]


class Step(NamedTuple):
    """A step and its limit in *seconds*.

    It is done with tensors of each kind at once ("each") or "in turn", of the "first" kind that is there, or of "none".
    """

    name: str
    seconds: float
    about: str
    kinds: str = "each"
    devices: tuple[str, ...] = ("cuda", "fake")


STEPS = (
    Step("versions", 15, "what is installed and which devices there are", "none", ("cuda", "fake", "cpu")),
    Step("libraries", 30, "which libraries are loaded, and which the engine takes"),  # reads them from the disk
    Step("driver", 15, "the driver's functions that the engine calls", "none"),
    Step("ipc", 20, "CUDA's IPC between two processes without shim", "none"),
    Step("kernels", 40, "the 60 kernels against numpy"),
    Step("nccl", 25, "each collective by NCCL on one rank"),
    Step("cycles", 35, "100 times init, call and close", "first"),
    Step("capture", 20, "calls in a CUDA graph"),
    Step("two_ranks", 35, "two ranks on one GPU: each collective, messages, a killed rank"),
    Step("streams", 20, "calls are ordered on the current stream, and overlap", "in turn"),  # which is a matter of time
    Step("table", 40, "many drawn calls by NCCL"),
    Step("one_device", 45, "many drawn calls of two ranks on one GPU"),
    Step("documents", 30, "the five documents' cases", "each", ("cuda", "fake", "cpu")),
    Step("measure", 30, "the two programs that measure", "none", ("cuda", "cpu")),
    Step("cpu", 60, "the engine on the processors beside gloo and Open MPI", "none", ("cuda", "fake", "cpu")),
)


class Part(NamedTuple):
    """A step with tensors of one *kind*, or of none. *why* says that it is skipped."""

    step: str
    kind: str
    command: Sequence[str]
    seconds: float
    why: str = ""


def run(turns: Iterable[Sequence[Part]], until: float, tell: Tell) -> Counter[str]:
    """Run the parts of each turn at once, one turn after the other, as long as there is time *until* then.

    Returns how many ended in which way.
    """
    ended: Counter[str] = Counter()

    def told(part: Part, outcome: dict[str, Any]) -> None:
        ended[outcome["status"]] += 1
        tell({"step": part.step, **({"kind": part.kind} if part.kind else {}), **outcome})

    for parts in turns:
        running: list[tuple[Part, StepProcess]] = []
        try:
            for part in parts:
                left = until - time.monotonic()
                why = part.why or ("" if left >= _LEAST else "the time given is used up")
                if why:
                    told(part, {"status": "skipped", "seconds": 0.0, "why": why})
                else:
                    running.append((part, StepProcess(part.command, min(part.seconds, left))))
            while running:
                time.sleep(0.02)
                for one in list(running):
                    if (outcome := one[1].outcome()) is not None:
                        running.remove(one)
                        told(one[0], outcome)
        finally:
            for _, process in running:
                process.end()
    return ended


def turns_of(steps: Iterable[Step], given: argparse.Namespace) -> Iterator[list[Part]]:
    """Yield the parts of each step with what is there."""
    kinds = KINDS[given.device]
    there = [kind for kind in kinds if kind == "fake" or importlib.util.find_spec(kind) is not None]
    for step in steps:
        seconds = step.seconds * max(1.0, given.minutes / MINUTES)
        why = _reason(step, given)
        chosen: Sequence[str] = kinds
        if step.kinds == "none":
            chosen = ["fake" if given.device == "fake" and step.name in ("driver", "ipc") else ""]
        elif step.kinds == "first":
            chosen = there[:1] or kinds[:1]
        parts = []
        for kind in [""] if why else chosen:
            tree = "yes" if given.from_tree else "no"
            command = [sys.executable, str(HERE / "first_steps.py"), step.name, kind, given.device, tree]
            missing = f"{kind} is not installed" if kind and kind not in there else ""
            parts.append(Part(step.name, kind, command, seconds, why or missing))
        if step.kinds == "in turn":
            yield from ([part] for part in parts)
        else:
            yield parts


def limit(steps: Iterable[Step]) -> float:
    """Return the seconds that *steps* take at most, with all kinds of tensors."""
    most = max(map(len, KINDS.values()))
    return sum(step.seconds * (most if step.kinds == "in turn" else 1) for step in steps)


def _reason(step: Step, given: argparse.Namespace) -> str:
    """Return why *step* is not done at all, if so."""
    if given.device not in step.devices:
        return f"it cannot be done with --device {given.device}"
    if step.name in ("measure", "cpu") and importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    if step.name == "cpu" and not given.only and (usable := len(os.sched_getaffinity(0))) <= _FEW_PROCESSORS:
        return f"there are {usable} processors, which is too few; --only cpu does it all the same"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=list(KINDS), default="cuda", help="where the tensors are")
    parser.add_argument("--only", nargs="+", metavar="STEP", choices=[step.name for step in STEPS], help="these steps")
    parser.add_argument("--out", type=Path, help="a file to which the lines are added")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="the time for all of it")
    parser.add_argument("--from-tree", action="store_true", help="do not mind that shim is not an installed package")
    given = parser.parse_args()
    if given.device == "fake" and not (HERE.parent / "core/engines/nccl/fake_device.py").exists():
        parser.error(f"the fakes are not in {HERE.parent / 'core/engines/nccl'}")
    if not given.minutes > 0:
        parser.error(f"--minutes must be more than 0, got {given.minutes:g}")
    if given.out and not given.out.parent.is_dir():
        parser.error(f"there is no folder {given.out.parent}")
    if importlib.util.find_spec("numpy") is None:
        parser.error("numpy is not installed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs is ended first
    began = time.monotonic()
    bad: list[str] = []

    def tell(line: dict[str, Any]) -> None:
        if line.get("status") in ("failed", "timeout"):
            bad.append(" ".join(filter(None, (line["step"], line.get("kind")))))
        text = json.dumps(line)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        with suppress(OSError):  # of a full disk: the run goes on
            if given.out:
                with given.out.open("a") as file:
                    file.write(f"{text}\n")

    steps = [step for step in STEPS if not given.only or step.name in given.only]
    ended = run(turns_of(steps, given), began + 60 * given.minutes, tell)
    seconds = round(time.monotonic() - began, 1)
    tell({"summary": dict(ended), "bad": bad, "device": given.device, "seconds": seconds})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
