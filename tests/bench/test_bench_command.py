"""``shim bench``, ``shim bench check`` and ``shim bench show`` as commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DEADLINE = 120  # seconds


def shim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shim", "bench", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    )


def test_a_run_prints_a_table_and_writes_json_that_check_reads(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    ended = shim(
        "--through", "engine", "--peers", "none", "--ranks", "2", "--collective", "all_reduce,barrier", "--size", "8,4KB",
        "--rounds", "1", "--seconds", "0.002", "--json", str(file),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for expected in (
        "all_reduce, 2 ranks, float32",
        "barrier, 2 ranks",
        "4 KB",
        "floor-two-copies",
        "x floor",
        "there and back",
    ):
        assert expected in ended.stdout, expected
    read = json.loads(file.read_text())
    measured = [one for one in read["results"] if one["contender"] == "engine"]
    assert [(one["collective"], one["size"], one["status"]) for one in measured] == [
        ("all_reduce", 8, "measured"),
        ("all_reduce", 4096, "measured"),
        ("barrier", 0, "measured"),
    ]
    assert read["overlaps"][0]["ratio"] > 0
    checked = shim("check", str(file))
    assert checked.returncode == 1
    assert "5a. 2 ranks, engine" in checked.stdout
    assert "not measured" in checked.stdout
    shown = shim("show", str(file))
    assert shown.returncode == 0, shown.stderr
    assert "all_reduce, 2 ranks, float32" in shown.stdout
    assert "x floor" in shown.stdout
    page = shim("show", str(file), "--markdown", "--plot", str(tmp_path / "pictures"))
    assert "| 4 KB | " in page.stdout
    assert (tmp_path / "pictures" / "all_reduce-2-ranks-float32.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--collective", "all_reduse"), "all_reduse"),
        (("--size", "4XB"), "4XB"),
        (("--ranks", "1"), "'1'"),
        (("--ranks", "513"), "from 2 to 512"),
        (("--seconds", "inf"), "--seconds"),
        (("--through", "jax"), "jax"),
        (("--dtype", "float8"), "float8"),
        (("--json", "/nowhere/at/all.json"), "/nowhere/at"),
        (("--json", "/proc/result.json"), "/proc/result.json cannot be written"),
        (("--plot", "/proc/pictures"), "/proc/pictures"),
        (("--memory", "many"), "many"),
        (("--peers", "mpich", "--mpich", "/nowhere"), "mpich: there is no mpiexec"),
        (("check", "/nowhere.json"), "/nowhere.json"),
    ],
)
def test_what_is_not_understood_or_not_there_is_told(arguments: tuple[str, ...], told: str) -> None:
    ended = shim(*arguments)
    assert ended.returncode == 2
    assert told in ended.stderr.replace("\n", " ")


def test_help_names_every_option() -> None:
    text = shim("--help").stdout + shim("run", "--help").stdout
    for option in (
        "--memory", "--collective", "--ranks", "--dtype", "--size", "--peers", "--through", "--quick", "--rounds", "--seconds", "--json",
        "--plot", "check",
    ):  # fmt: skip
        assert option in text, option
