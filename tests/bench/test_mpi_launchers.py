"""Which MPI is found where, and with which settings its ranks are started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shim.bench.plan import CONTENDERS
from shim.bench.ranks.launchers import Mpi, commands_of, find_mpi, mpi_options


def installed(folder: Path, says: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "libmpi.so").touch()
    launcher = folder / "bin" / "mpiexec"
    launcher.write_text(f"#!/bin/sh\necho '{says}'\n")
    launcher.chmod(0o755)
    return folder


def test_an_mpi_is_found_in_the_folder_given_for_it(tmp_path: Path) -> None:
    folder = installed(tmp_path / "mpich", "HYDRA build details:")
    found = find_mpi("mpich", {"mpich": folder})
    assert found == Mpi("mpich", str(folder / "bin" / "mpiexec"), str(folder / "lib"))


def test_the_other_mpi_is_not_taken_for_it(tmp_path: Path) -> None:
    folder = installed(tmp_path / "other", "mpiexec (Open MPI) 5.0.11")
    told = find_mpi("mpich", {"mpich": folder})
    assert isinstance(told, str)
    assert "--mpich FOLDER" in told


def test_ranks_of_mpi_are_told_which_library_to_load(tmp_path: Path) -> None:
    folder = installed(tmp_path / "mpich", "HYDRA build details:")
    mpi = find_mpi("mpich", {"mpich": folder})
    assert isinstance(mpi, Mpi)
    (command,) = commands_of(CONTENDERS["mpich"], 2, 2, "socket", mpi)
    assert command.arguments[:3] == [mpi.launcher, "-n", "2"]
    assert command.environment["MPI4PY_MPIABI"] == "mpich"
    assert command.environment["LD_LIBRARY_PATH"].split(os.pathsep)[0] == str(folder / "lib")


def test_our_ranks_know_who_they_are_and_have_one_thread() -> None:
    commands = commands_of(CONTENDERS["engine"], 3, 2, "socket", None)
    assert [command.environment["SHIM_RANK"] for command in commands] == ["0", "1", "2"]
    assert {command.environment["OPENBLAS_NUM_THREADS"] for command in commands} == {"1"}
    assert len({command.environment["SHIM_JOB"] for command in commands}) == 1


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
@pytest.mark.parametrize("ranks", [2, 8])
def test_tuned_settings_bind_where_there_are_enough_processors_and_yield_where_not(name: str, ranks: int) -> None:
    plain, tuned = (mpi_options(name, ranks, 2, tuned=tuned) for tuned in (False, True))
    told = " ".join([*tuned[0], *(f"{key}={value}" for key, value in tuned[1].items())])
    assert plain != tuned
    assert ("core" in told) == (ranks == 2)
    assert ("yield" in told.lower()) == (ranks == 8)
