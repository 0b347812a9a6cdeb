"""What the README shows runs, prints what it shows, and its figures and lists are complete."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import shim
from shim.core.job import variables

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(shim.__file__).parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM, *BLOCKS = re.findall(
    r"^```(?:python)?\n(.*?)^```$", README[README.index("## Ten lines") :], re.DOTALL | re.MULTILINE
)


def run(folder: Path, size: int, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "example.py").write_text(program, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "shim", "run", "-n", str(size), "example.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_readme_is_short_and_its_example_has_ten_lines() -> None:
    assert len(README.splitlines()) < 150
    assert len([line for line in PROGRAM.splitlines() if line]) == 10


@pytest.mark.parametrize("size", [1, 3])
def test_the_example_runs(tmp_path: Path, size: int) -> None:
    ended = run(tmp_path, size, PROGRAM)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    total, each = [size * (size + 1) / 2] * 3, [[rank + 1.0] * 3 for rank in range(size)]
    for rank in range(size):
        assert f"rank {rank} of {size}: sum {total}, all {each}" in ended.stdout


def test_the_example_prints_what_the_readme_shows(tmp_path: Path) -> None:
    ended = run(tmp_path, 2, PROGRAM)
    assert (ended.returncode, sorted(ended.stdout.splitlines()), ended.stderr) == (0, BLOCKS[0].splitlines(), "")


def test_the_changed_example_ends_in_the_error_that_the_readme_shows(tmp_path: Path) -> None:
    changed = re.search(r"as with `(dist\.all_reduce\(.*?\))`", README)
    assert changed is not None
    program = re.sub(r"^dist\.all_reduce\(.*\)$", changed[1], PROGRAM, flags=re.MULTILINE)
    assert program != PROGRAM

    def seen_by_any_rank(text: str) -> list[str]:
        return re.sub(r"^\[\d\] |(?<=\(rank )\d|  <- this rank$", "", text, flags=re.MULTILINE).splitlines()

    ended = run(tmp_path, 2, program)
    assert ended.returncode == 1
    shown = seen_by_any_rank(BLOCKS[1].replace("/home/me", str(tmp_path)))
    printed = seen_by_any_rank(ended.stderr)
    assert printed[-len(shown) - 1 : -1] == shown


def test_the_example_is_ported_and_verified_as_the_readme_shows(tmp_path: Path) -> None:
    pytest.importorskip("libcst", reason="shim port is not installed here")
    (tmp_path / "example.py").write_text(PROGRAM, encoding="utf-8")
    command = re.search(r"`(shim port --from torch .*?)`", README)
    assert command is not None
    ended = subprocess.run(
        [sys.executable, "-m", *shlex.split(command[1])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.endswith(BLOCKS[2])


def test_the_figures_are_those_of_the_measured_run() -> None:
    results = (ROOT / "docs" / "performance_results.md").read_text(encoding="utf-8")
    table = results[results.index("### all_reduce, 2 ranks, float32") :]
    heads, rows = _cells(table.splitlines()[2]), {row[0]: row for row in map(_cells, table.splitlines()[4:17])}
    shown = [_cells(line) for line in re.findall(r"^\| \d+ .?B .*$", README, re.MULTILINE)]
    assert len(shown) == 3
    for size, ours, gloo, open_mpi in shown:
        measured = dict(zip(heads, rows[size], strict=True))
        assert ours == measured["torch"]
        assert gloo == min(measured["gloo"], measured["gloo-tuned"], key=_number)
        assert open_mpi == min(measured["openmpi"], measured["openmpi-tuned"], key=_number)


def test_the_verdicts_are_those_on_record() -> None:
    records = (PACKAGE / "conformance" / "examples" / "recorded").glob("*.json")
    counts = Counter(row.get("verdict") for file in records for row in json.loads(file.read_text("utf-8")).values())
    wrong, elsewhere = counts["document wrong"], counts["not runnable here"]
    said = " ".join((ROOT / "docs" / "conformance.md").read_text(encoding="utf-8").split())
    assert f"{wrong} show that the example itself is wrong, and {elsewhere} need hardware" in said


def test_every_variable_that_the_source_reads_is_in_the_table() -> None:
    listed = {
        name
        for line in (ROOT / "docs" / "variables.md").read_text("utf-8").splitlines()
        if line.startswith("| `SHIM_")
        for name in re.findall(r"`(SHIM_\w+)`", line)
    }
    assert listed == set(_variables()) == set(variables.KNOWN)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def _number(cell: str) -> float:
    return float(cell.replace(",", ""))


def _variables() -> Iterator[str]:
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"SHIM_\w+", node.value):
                yield node.value
    for file in (ROOT / "native").rglob("*.cpp"):  # but for those of test builds
        if not {"tests", "fuzz"}.intersection(file.parts) and file.name != "fault_points.cpp":
            yield from re.findall(r'getenv\("(SHIM_\w+)"', file.read_text(encoding="utf-8"))
