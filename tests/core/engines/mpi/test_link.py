"""The link by MPI on 2 to 4 ranks: each case of link_cases.py, all of them under one mpirun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import mpi_seats
import pytest

from shim.launch.identity import environment_of_ranks

FOLDER = Path(__file__).parent
DEADLINE = 150.0  # seconds
SIZES = (2, 3, 4)
NAMES = (
    "a_wait_ends",
    "all_gather",
    "all_gather_in_place",
    "all_gather_of_read_only_bytes",
    "all_reduce",
    "all_to_all",
    "all_to_all_of_nothing",
    "an_earlier_groups_messages_stay_its_own",
    "another_world_is_refused",
    "broadcast",
    "communicators_are_used_again",
    "groups",
    "groups_made_at_once_are_two",
    "groups_of_one_number_part_do_not_share",
    "headers",
    "many_groups",
    "messages",
    "messages_during_a_collective",
    "pieces_of_what_is_too_large",
    "refused_reductions",
    "sums_of_two_bfloat16",
)


def open_mpi(size: int) -> tuple[list[str], dict[str, str]]:
    return mpi_seats.mpirun(size), mpi_seats.AS_ROOT


def mpich(size: int) -> tuple[list[str], dict[str, str]]:
    """MPICH's wheel has files of Open MPI's names, so that it is in a folder of its own; mpi4py is the same for both."""
    folder = os.environ.get("SHIM_TEST_MPICH", "")
    if not Path(folder, "bin/mpiexec.hydra").exists():
        told = f"SHIM_TEST_MPICH={folder}: no MPICH is there\nInstall it: python -m venv FOLDER && FOLDER/bin/pip install mpich."
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)
    variables = {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": f"{folder}/lib"}
    return [f"{folder}/bin/mpiexec.hydra", "-n", str(size)], variables


LIBRARIES = [open_mpi, pytest.param(mpich, marks=pytest.mark.nightly)]


def started(library, size: int, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command, variables = library(size)
    return subprocess.run(
        [*command, sys.executable, str(FOLDER / program), *arguments],
        env=environment_of_ranks(size) | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@cache
def outcomes(library, size: int) -> list[dict[str, str]]:
    """Return by rank what each case said: nothing, or how it failed."""
    with TemporaryDirectory() as folder:
        run = started(library, size, "link_program.py", folder)
        files = [Path(folder, f"{rank}.json") for rank in range(size)]
        said = [json.loads(file.read_text()) if file.exists() else {} for file in files]
    said.append({"": f"status {run.returncode}\n{run.stdout}\n{run.stderr}"})
    return said


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("size", SIZES)
class TestLink:
    @pytest.mark.parametrize("name", NAMES)
    def test_case(self, library, size: int, name: str) -> None:
        *ranks, program = outcomes(library, size)
        for rank, said in enumerate(ranks):
            assert said.get(name, program[""]) == "", f"rank {rank}"

    def test_all_cases_ran_and_the_ranks_ended_in_order(self, library, size: int) -> None:
        *ranks, program = outcomes(library, size)
        assert program[""].startswith("status 0\n")
        assert [sorted(said) for said in ranks] == [list(NAMES)] * size


@pytest.mark.parametrize("library", LIBRARIES)
def test_ranks_whose_messages_never_come_end_in_order(library) -> None:
    run = started(library, 2, "ending_program.py")
    assert (run.returncode, sorted(run.stdout.splitlines())) == (0, ["rank 0 ends", "rank 1 ends"])
    assert run.stderr == ""


def test_a_rank_ends_whose_peer_has_died() -> None:
    """mpirun is told by --enable-recovery to let it live. MPI_Finalize would wait for the dead rank."""
    began = time.monotonic()
    run = started(open_mpi, 2, "ending_program.py", "killed")
    assert "rank 0 ends\n" in run.stdout
    assert time.monotonic() - began < 20
