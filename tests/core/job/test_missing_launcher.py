"""What a program is told that was started alone, and for whose world of one rank nobody has asked; and of misspelt variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from launcher_variables import open_mpi, torchrun
from preloaded_programs import run_python

LINE = (
    "shim: no launcher has started this process, so it is the only rank; "
    "`shim run -n 4 train.py` starts 4 ranks, and -n 1 this one without this line\n"
)
PROGRAM = """
import shim.frontends.{frontend} as dist
for _ in range(2):
    dist.{init}
    assert dist.{size}() == 1
    dist.{destroy}()
"""
TORCH = {"frontend": "torch.distributed", "size": "get_world_size", "destroy": "destroy_process_group"}
PADDLE = TORCH | {"frontend": "paddle_3.distributed", "init": "init_parallel_env()"}
MINDSPORE = {"frontend": "mindspore.communication", "init": "init()", "size": "get_group_size", "destroy": "release"}
ALONE = {name: value for name, value in os.environ.items() if not name.startswith(("SHIM_", "RANK", "WORLD_SIZE"))}
BY_HAND = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def said(folder: Path, words: Mapping[str, str], variables: Mapping[str, str] = {}, *command: str) -> str:
    (folder / "train.py").write_text(PROGRAM.format(**words))
    done = run_python(*command, "train.py", cwd=folder, env={**ALONE, **variables})
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "words", [TORCH | {"init": "init_process_group()"}, PADDLE, MINDSPORE], ids=lambda words: words["frontend"]
)
def test_a_program_whose_launcher_was_forgotten_is_told_once(tmp_path: Path, words: Mapping[str, str]) -> None:
    assert said(tmp_path, words) == LINE


@pytest.mark.parametrize(
    ("init", "variables", "command"),
    [
        ("init_process_group(rank=0, world_size=1)", {}, ()),
        ("init_process_group(init_method='tcp://localhost:29500?rank=0&world_size=1')", {}, ()),
        ("init_process_group(store=dist.HashStore(), rank=0, world_size=1)", {}, ()),
        ("init_process_group()", BY_HAND, ()),
        ("init_process_group()", {"RANK_ID": "0", "RANK_SIZE": "1"}, ()),
        ("init_process_group()", torchrun(0, 1), ()),
        ("init_process_group()", open_mpi(0, 1), ()),
        ("init_process_group()", {}, ("-m", "shim", "run", "-n", "1")),
    ],
)
def test_one_that_asks_for_one_rank_is_not(
    tmp_path: Path, init: str, variables: Mapping[str, str], command: tuple[str, ...]
) -> None:
    assert said(tmp_path, TORCH | {"init": init}, variables, *command) == ""


def test_one_rank_says_once_which_variables_have_no_effect(tmp_path: Path) -> None:
    misspelt = {
        "SHIM_ENGNE": "plain",
        "SHIM_COLOUR": "red",
        "SHIM_TEST_MPICH": "/",
        "SHIM_JOB_NAME": "mine",
        "SHIMMER": "1",
    }
    words = TORCH | {"init": "init_process_group()", "size": "is_initialized"}
    assert said(tmp_path, words, misspelt, "-m", "shim", "run", "-n", "2").splitlines() == [
        "[0] shim: the environment variable SHIM_COLOUR has no effect",
        "[0] shim: the environment variable SHIM_ENGNE has no effect; did you mean SHIM_ENGINE?",
    ]
