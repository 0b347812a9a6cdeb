"""Runs the ranks that ask, in a framework's own world or in ours, and compares what they were told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from campaigns.questions.listed import questions_of
from campaigns.questions.reasons import REASONS, reason_for

Answers = dict[str, list[Any]]  # of each question, those of all ranks
Launch = Callable[[str, Path, Path], object]

RECORD = Path(__file__).parent / "answers.json"
PROGRAM = str(Path(__file__).with_name("asking.py"))
_RANKS = 2
_PACKAGES = {"torch": "torch", "paddle": "paddlepaddle", "mindspore": "mindspore"}
_LAUNCHERS = {
    "torch": ("torchrun", "--nproc-per-node", "2", "--standalone"),
    "paddle": ("-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", "logs"),
    "mindspore": (
        "msrun",
        "--worker_num=2",
        "--local_worker_num=2",
        "--master_port=8347",
        "--join=True",
        "--log_dir=logs",
    ),
}


class Comparison(NamedTuple):
    """What became of comparing the answers of one framework: how many there are, those that differ for a reason, and what fails."""

    compared: int
    explained: tuple[str, ...]
    faults: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.compared} questions compared, {len(self.explained) + len(self.faults)} differ, {len(self.faults)} without a reason"


def ask_framework(framework: str, folder: Path, questions: Path) -> None:
    """Have two ranks of the *framework*'s own world write their answers."""
    first, *others = _LAUNCHERS[framework]
    command = [sys.executable, first] if first == "-m" else [str(Path(sys.executable).parent / first)]
    _run(
        [*command, *others, PROGRAM, framework, str(folder), str(questions)], folder, {"PADDLE_DISTRI_BACKEND": "gloo"}
    )


def ask_ours(framework: str, folder: Path, questions: Path) -> None:
    """Have two ranks of a substituted program write their answers."""
    command = [sys.executable, "-m", "shim", "run", "-n", "2", "--as-installed", PROGRAM]
    _run([*command, framework, str(folder), str(questions)], folder, {})


def _run(command: list[str], folder: Path, variables: Mapping[str, str]) -> None:
    """Run *command*. Its exit status says nothing, as msrun's ranks that end without their scheduler fail; the answers do."""
    environment = {**os.environ, **variables}
    subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, timeout=300)


def answers_of(framework: str, launch: Launch) -> Answers:
    """Return the answers that *launch* finds to the questions of the installed *framework*. Raises ValueError for ranks that have not answered all."""
    questions = questions_of(framework)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listed = folder / "questions.json"
        listed.write_text(json.dumps(questions))
        launch(framework, folder, listed)
        told = [_told(folder / f"{rank}.jsonl") for rank in range(_RANKS)]
    if any(list(one) != questions for one in told):
        raise ValueError(f"{framework}: of {len(questions)} questions, ranks answered {[len(one) for one in told]}")
    return {question: [one[question] for one in told] for question in questions}


def _told(file: Path) -> dict[str, Any]:
    return dict(map(json.loads, file.read_text().splitlines())) if file.exists() else {}


def recorded(framework: str) -> Answers:
    """Return the framework's own answers on record. Raises ValueError if they are of another version."""
    record = json.loads(RECORD.read_text())[framework]
    installed = version(_PACKAGES[framework]).partition("+")[0]
    if record["version"] != installed:
        raise ValueError(
            f"{framework} {installed} is installed, and the record is of {record['version']}: record it anew"
        )
    answers: Answers = record["answers"]
    return answers


def recording(framework: str) -> dict[str, Any]:
    """Return a record of the answers in the framework's own world."""
    installed = version(_PACKAGES[framework]).partition("+")[0]
    return {"version": installed, "answers": answers_of(framework, ask_framework)}


def compare(framework: str, theirs: Answers, ours: Answers) -> Comparison:
    """Compare the *framework*'s answers with those in a substituted program, question by question and rank by rank."""
    explained, faults = [], [f"{question} is not on record" for question in ours if question not in theirs]
    differing = {question for question in theirs if theirs[question] != ours.get(question)}
    for question in sorted(differing):
        reason = reason_for(question)
        if reason is None:
            faults.append(f"{question}: {framework} answers {theirs[question]}, ours {ours.get(question)}")
        else:
            explained.append(f"{question}: {reason}")
    used = {reason_for(question) for question in differing}
    of_framework = {reason for pattern, reason in REASONS.items() if pattern.startswith(f"{framework}\\")}
    faults += [f"no answer differs for this reason: {reason}" for reason in sorted(of_framework - used)]
    return Comparison(len(theirs), tuple(explained), tuple(faults))
