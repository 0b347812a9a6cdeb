"""The rank processes of one contender: started once, asked for turns, asleep in between, and ended for good when one is late or dies."""

from __future__ import annotations

import math
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from shim.bench.libraries.base import Place
from shim.bench.plan import Contender
from shim.bench.ranks.launchers import Mpi, commands_of
from shim.bench.ranks.rank import Hello, Ready, Start, short_path
from shim.bench.ranks.turn import LINE_BYTES, Answer, OverlapTurn, Turn
from shim.launch.endings import GRACE, dying_with, how_it_ended
from shim.launch.identity import free_addresses

_STARTING = 180.0  # seconds for all ranks to import and connect
_AGREEING = 10.0  # seconds for all ranks to refuse what one of them has refused
_LAST_LINES = 12  # of the ranks' output that are shown when they fail
_LOOK = 0.2  # seconds between two looks at whether a process that should connect has died


class RanksEndedError(Exception):
    """The ranks are of no more use and have been ended; the text says why."""


class RankSet:
    """*ranks* rank processes of *contender*. Close it in the end; raises RanksEndedError where they do not start."""

    def __init__(self, contender: Contender, ranks: int, processors: int, mpi: Mpi | None = None) -> None:
        self.versions: dict[str, str] = {}
        self.command: list[str] = []
        self._name, self._ranks = contender.name, ranks
        self._connections: dict[int, Connection] = {}
        self.pids: list[int] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shim-bench-")))
            self._output = stack.enter_context(tempfile.TemporaryFile())
            self._line = _memory_file(stack, LINE_BYTES)
            self._segment = _memory_file(stack, 0)
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            with short_path(self._folder / "socket") as path:
                listener.bind(path)
            listener.listen(ranks)
            self._resources = stack.pop_all()
        try:
            for command in commands_of(contender, ranks, processors, str(self._folder / "socket"), mpi):
                self._start(command.arguments, command.environment)
            self._connect(listener, contender, processors)
        except BaseException:  # an interrupt too must leave no process behind
            self.close()
            raise

    def _start(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        self.command = list(arguments[: arguments.index("-c") - 1])
        self._processes.append(
            subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=dying_with(os.getpid(), in_group=True),  # see shim.launch.processes
            )
        )

    def _connect(self, listener: socket.socket, contender: Contender, processors: int) -> None:
        until = time.monotonic() + _STARTING
        listener.settimeout(_LOOK)
        while len(self._connections) < self._ranks:
            with suppress(TimeoutError):
                connection = self._resources.enter_context(Connection(listener.accept()[0].detach()))
                hello: Hello = connection.recv()
                self._connections[hello.rank] = connection
                self.pids.append(hello.pid)
            if any(process.poll() is not None for process in self._processes) or time.monotonic() > until:
                raise RanksEndedError(self._why(f"did not start within {_STARTING:g} s"))
        shared = self._folder / "shared"
        shared.mkdir()
        endpoints = tuple(free_addresses(self._ranks))
        for rank, connection in self._connections.items():
            place = Place(rank, self._ranks, str(shared), processors, self._segment, endpoints)
            self._say(connection, Start(contender.library, place, self._line))
        ready: list[Ready] = self._hear(until - time.monotonic())
        failed = next((one.error for one in ready if one.error), None)
        if failed:
            raise RanksEndedError(f"did not start: {failed.strip().splitlines()[-1]}")
        self.versions = ready[0].versions

    def ask(self, request: Turn | OverlapTurn, deadline: float) -> list[Answer]:
        """Let all ranks take a turn, and return their answers in the order of ranks.

        Raises RanksEndedError, and ends the ranks, when one dies, has not answered after *deadline* seconds or answers with an error.
        """
        try:
            for connection in self._connections.values():
                self._say(connection, request)
            answers: list[Answer] = self._hear(deadline)
        except RanksEndedError:
            self.close()
            raise
        return answers

    def _say(self, connection: Connection, message: object) -> None:
        with suppress(BrokenPipeError):  # it has died, which _hear will see
            connection.send(message)

    def _hear(self, deadline: float) -> list[Any]:
        """Return one message of each rank. Nothing is looked at while they work: this process sleeps."""
        heard: dict[int, Any] = {}
        begun = time.monotonic()
        until = begun + deadline
        with selectors.DefaultSelector() as selector:
            for rank, connection in self._connections.items():
                selector.register(connection, selectors.EVENT_READ, rank)
            while len(heard) < self._ranks:
                found = selector.select(max(0.0, until - time.monotonic()))
                if not found:
                    late = sorted(set(self._connections) - set(heard))
                    raise RanksEndedError(
                        f"ended: rank {', '.join(map(str, late))} had not answered after {time.monotonic() - begun:.0f} s"
                    )
                for key, _ in found:
                    try:
                        heard[key.data] = self._connections[key.data].recv()
                    except (EOFError, OSError):
                        raise RanksEndedError(self._why(f"rank {key.data} has died")) from None
                    until = min(until, _left_to_the_others(heard[key.data]))
                    selector.unregister(key.fileobj)
        return [heard[rank] for rank in sorted(heard)]

    def _why(self, told: str) -> str:
        statuses = [process.poll() for process in self._processes]
        ends = [how_it_ended(status) for status in statuses if status is not None]
        size = os.fstat(self._output.fileno()).st_size
        printed = os.pread(self._output.fileno(), 4000, max(0, size - 4000)).decode(errors="replace")
        lines = [line for line in printed.splitlines() if line.strip()][-_LAST_LINES:]
        return "\n".join([f"{told}{f', its process {ends[0]}' if ends else ''}", *lines])

    def close(self) -> None:
        """End all processes: those that sleep by themselves, the others by force."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
        self._await_end()
        for process in self._processes:
            if process.poll() is None:
                process.terminate()  # a launcher ends its ranks and takes away their files
        self._await_end()
        for process in self._processes:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                for pid in self.pids:  # those of a launcher are not all in its process group
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        self._resources.close()

    def _await_end(self) -> None:
        until = time.monotonic() + GRACE
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))


def _left_to_the_others(message: object) -> float:
    """Return until when the others have time after this message. Raises RanksEndedError for one after which there is no waiting."""
    if isinstance(message, Answer) and message.error is not None:
        raise RanksEndedError(message.error.strip().splitlines()[-1])
    if isinstance(message, Answer) and message.cannot is not None:
        return time.monotonic() + _AGREEING
    return math.inf


def _memory_file(stack: ExitStack, size: int) -> str:
    """Make a file in memory that other processes of this user can open, and that cannot outlive this one."""
    number = os.memfd_create("shim-bench")
    stack.callback(os.close, number)
    os.ftruncate(number, size)
    return f"/proc/{os.getpid()}/fd/{number}"
