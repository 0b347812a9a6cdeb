"""A process that imports modules once, and of which rank processes are copies: each finds everything as it is after the imports.

The process does nothing else itself, so that its copies share its memory with it, and one that dies leaves it as it was.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from shim.launch.endings import GRACE
from shim.launch.identity import environment_of_ranks
from shim.launch.messages import read_message, write_message

__all__ = ["Copy", "Original", "program_of"]

_PATIENCE = 240.0  # seconds for the imports


def program_of(module: str) -> str:
    """Return a program that calls ``main`` of *module*, which it finds where this process does.

    ``python -m`` would look in the working folder first, where a source tree may hide the installed package.
    """
    return f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"


class Original:
    """A process that has imported *modules* when the first copy of it is asked for. *environment* is added to this process's.

    Use it as a context manager, or close it; the copies die with it. Several threads may ask for copies.
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._modules = modules
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._asking = threading.Lock()

    def start(self) -> None:
        """Import the modules, where that has not been done. Raises RuntimeError with what they have printed, where they cannot be."""
        self._ask(None)

    def copy(self, tasks: int, answers: int, output: int, variables: Mapping[str, str]) -> Copy:
        """Return a copy that serves the pipes *tasks* and *answers* as a rank, prints to *output*, and has *variables* in its environment.

        Raises RuntimeError with what the process has printed, where it cannot import its modules.
        """
        return Copy(self, self._ask(dict(variables), tasks, answers, output))

    def reap(self, pid: int) -> int:
        """Wait for the copy *pid*, and return how it ended, as ``subprocess`` does."""
        return self._ask(pid)

    def _ask(self, request: object, *descriptors: int) -> int:
        with self._asking:
            if self._process is None:
                self._start()
            try:
                socket.send_fds(self._socket, [b"."], descriptors)
                write_message(self._stream, pickle.dumps(request))
                in_time, _, _ = select.select([self._socket], [], [], _PATIENCE)
                answer = read_message(self._stream) if in_time else None
            except OSError:
                answer = None
            if answer is None:
                imports = ", ".join(self._modules)
                raise RuntimeError(f"no copy can be made of the process that imports {imports}\n{self._printed()}")
            return int(pickle.loads(answer))

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    program_of("shim.launch.original_process"),
                    str(theirs.fileno()),
                    *self._modules,
                ],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                env=environment_of_ranks(2, self._environment),
            )
        self._socket = ours
        self._stream = ours.makefile("rwb")

    def _printed(self) -> str:
        assert self._output is not None
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def close(self) -> None:
        """End the process, and with it all copies."""
        process, self._process = self._process, None
        if process is None:
            return
        self._stream.close()
        self._socket.close()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert self._output is not None
        self._output.close()

    def __enter__(self) -> Original:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Copy:
    """A copy of an original, with the methods of ``subprocess.Popen`` that a pool calls."""

    def __init__(self, original: Original, pid: int) -> None:
        self.pid = pid
        self._original = original
        self._status: int | None = None
        self._pidfd = os.pidfd_open(pid)

    def send_signal(self, number: int) -> None:
        """Send a signal. The copy is not reaped before ``wait``, so the id is its own."""
        if self._status is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return how the copy ended, negative for a death by signal. Raises TimeoutExpired when it has not after *timeout* seconds."""
        if self._status is None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a copy", timeout or 0.0)
            self._status = self._original.reap(self.pid)
            os.close(self._pidfd)
        return self._status
