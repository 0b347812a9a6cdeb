"""What is measured of the machine is kept where the user's environment says, and a group's thresholds can be seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shim
from shim.core import groups
from shim.core.engines.shared_memory import NEVER, measurements_folder
from shim.core.job.variables import Variables
from shim.frontends.torch import distributed as dist

pytestmark = pytest.mark.engine("shared_memory")
INIT = "import shim, shim.frontends.torch.distributed as dist; dist.init_process_group(); print(shim.explain())"


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HOME": "/home/u"}, "/home/u/.cache/shim"),
        ({"HOME": "/home/u", "XDG_CACHE_HOME": "/caches"}, "/caches/shim"),
        ({"HOME": "/home/u", "XDG_CACHE_HOME": "relative"}, "/home/u/.cache/shim"),
        ({"HOME": "/home/u", "XDG_CACHE_HOME": "/caches", "SHIM_MEASURED": "/mine"}, "/mine"),
        ({"HOME": "/home/u", "SHIM_MEASURED": "off"}, None),
        ({"HOME": "/home/u", "SHIM_MEASURED": ""}, "/home/u/.cache/shim"),
        ({}, ""),
        ({"HOME": "/home/\udcff"}, ""),
    ],
)
def test_the_environment_says_where_measurements_are_kept(environment: dict[str, str], folder: str | None) -> None:
    assert measurements_folder(Variables(environment)) == folder


def started_alone(**variables: str) -> str:
    alone = {"SHIM_RANK": "0", "SHIM_WORLD_SIZE": "1", "SHIM_JOB": f"measurements {os.getpid()}"}
    result = subprocess.run(
        [sys.executable, "-c", INIT], env=os.environ | alone | variables, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_second_job_uses_what_the_first_has_measured(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "shim"
    for _ in range(50):  # on a busy machine, nothing is measured
        started_alone(SHIM_MEASURED=str(folder))
        if folder.exists():
            break
    [record] = folder.iterdir()
    lines = record.read_text().splitlines()
    assert lines[0] == "shim machine 3"
    chosen = {
        "line_ns": 1000,
        "copy_bytes_per_us": 1000000,
        "cross_bytes_per_us": 1000,
        "rewrite_ns": 5000,
        "claimed_rewrite_ns": 1000,
    }
    record.write_text("\n".join([*lines[:2], *(f"{name} {number}" for name, number in chosen.items()), ""]))
    told = started_alone(SHIM_MEASURED=str(folder))
    assert "claim 4096," in told
    assert "lend 262144, one_shot 262144" in told


def test_nothing_is_left_where_measuring_is_off(tmp_path: Path) -> None:
    told = started_alone(SHIM_MEASURED="off", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert "lend 32768, one_shot 65536" in told
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "thresholds in bytes: " in started_alone(SHIM_MEASURED=str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.ranks(2, 3)
def test_all_ranks_have_the_thresholds_that_explain_tells(world_size: int) -> None:
    dist.init_process_group()
    world = groups.world_of("torch")
    assert world is not None
    mine = dict(world.engine.thresholds())
    assert set(mine) == {"claim", "lend", "one_shot", "piece", "stream", "swap"}
    assert all(f"{name} {size}" in shim.explain() or size == NEVER for name, size in mine.items())
    everyone: list[object] = [None] * world_size
    dist.all_gather_object(everyone, mine)
    assert everyone == [mine] * world_size
    dist.destroy_process_group()
