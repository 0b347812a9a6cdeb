"""A process that imports modules once, and of which rank processes are copies: each finds everything as it is after the imports.

The process does nothing else itself, so that its copies share its memory with it, and one that dies leaves it as it was.
A request to it is a byte, with which a copy's three descriptors come, and an object: the variables of a new copy, whose process id is
answered, the process id of one to wait for, whose status is, or None, which is answered when the imports have ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

from shim.launch.endings import GRACE, dying_with, how_it_ended
from shim.launch.identity import environment_of_ranks
from shim.launch.pool_rank import serve

_PATIENCE = 240.0  # seconds for the imports


def program_of(module: str) -> str:
    """Return a program that calls ``main`` of *module*, which it finds where this process does.

    ``python -m`` would look in the working folder first, where a source tree may hide the installed package.
    """
    return f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"


class Original:
    """A process that has imported *modules* when the first copy of it is asked for. *environment* is added to this process's.

    Use it as a context manager, or close it; the copies die with it. Several threads may ask for copies. Where it has died, the next
    copy is one of a new process.
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._modules = modules
        self._environment = environment
        self._process: _Process | None = None
        self._asking = threading.Lock()

    def start(self) -> None:
        """Import the modules, where that has not been done. Raises RuntimeError with what they have printed, where they cannot be."""
        self._ask(None)

    def copy(self, tasks: int, answers: int, output: int, variables: Mapping[str, str]) -> Copy:
        """Return a copy that serves the pipes *tasks* and *answers* as a rank, prints to *output*, and has *variables* in its environment.

        Raises RuntimeError with what the process has printed, where it cannot import its modules.
        """
        return Copy(*self._ask(dict(variables), tasks, answers, output))

    def _ask(self, request: object, *descriptors: int) -> tuple[_Process, int]:
        """Return the process, and what it answers."""
        with self._asking:
            if self._process is not None and self._process.has_ended():
                self._drop()
            if self._process is None:
                self._process = _Process(self._modules, self._environment)
            process = self._process
            try:
                answer = process.ask(request, *descriptors)
            except BaseException:  # Ctrl-C too
                self._drop()
                raise
            if answer is None:
                imports = ", ".join(self._modules)
                raise RuntimeError(f"no copy can be made of the process that imports {imports}: {self._drop()}")
            return process, answer

    def _drop(self) -> str:
        """End the process, and with it all copies, and return how it ended and what it had printed."""
        process, self._process = self._process, None
        return "" if process is None else process.end()

    def close(self) -> None:
        """End the process, and with it all copies."""
        self._drop()

    def __enter__(self) -> Original:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Process:
    """The process itself, from its start until it ends. Several threads may ask it."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str] | None) -> None:
        self._asking = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self._messages = Connection(os.dup(self._socket.fileno()))
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by end()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    program_of("shim.launch.original"),
                    str(theirs.fileno()),
                    *modules,
                ],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                env=environment_of_ranks(2, environment),
            )

    def ask(self, request: object, *descriptors: int) -> int | None:
        """Return its answer, None where it does not give one, or is not there any more. It is asked nothing after that."""
        answer: int | None = None
        with self._asking:
            try:
                with contextlib.suppress(EOFError, OSError):
                    socket.send_fds(self._socket, [b"."], descriptors)
                    self._messages.send(request)
                    if self._messages.poll(_PATIENCE):
                        answer = int(self._messages.recv())
            finally:
                if answer is None:  # it may come yet, after Ctrl-C too, and would be taken for that to the next request
                    with contextlib.suppress(OSError):
                        self._socket.shutdown(socket.SHUT_RDWR)
        return answer

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> str:
        """End it, and return how it ended and what it had printed."""
        with self._asking:
            self._messages.close()
            self._socket.close()
            try:
                how = f"it {how_it_ended(self._process.wait(GRACE))}"
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                how = "it did not answer"
            with self._output as output:
                output.seek(0)
                return f"{how}\n{output.read().decode(errors='replace')}"


class Copy:
    """A copy of an original, with the methods of ``subprocess.Popen`` that a pool calls."""

    def __init__(self, original: _Process, pid: int) -> None:
        self.pid = pid
        self._original = original
        self._status: int | None = None
        self._pidfd = os.pidfd_open(pid)

    def send_signal(self, number: int) -> None:
        """Send a signal, if the copy is there."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):  # it died with its original, and somebody else has reaped it
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return how the copy ended, negative for a death by signal. Raises TimeoutExpired when it has not after *timeout* seconds."""
        if self._status is None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a copy", timeout or 0.0)
            status = self._original.ask(self.pid)
            self._status = (
                -signal.SIGKILL if status is None else status
            )  # which it is ended with when its original dies
            os.close(self._pidfd)
        return self._status


def main() -> None:
    """Be the process: serve requests until the other end is closed, as it is when its process dies. Arguments after the descriptor name the
    modules to import.

    That its parent dies is not asked of the kernel, which would tell of the thread that started this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at a terminal reaches all; the pool ends its ranks itself
    requests = socket.socket(fileno=int(sys.argv[1]))
    messages = Connection(os.dup(requests.fileno()))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    gc.freeze()  # or each copy's collector would look at, and so copy, all that the modules hold
    while True:
        begin, descriptors, _, _ = socket.recv_fds(requests, 1, 3)
        if not begin:
            return
        try:
            request = messages.recv()
        except EOFError:  # who asked has died between the two
            return
        answer = 0
        if request is not None:
            answer = _reaped(request) if isinstance(request, int) else _copied(request, descriptors, requests, messages)
        messages.send(answer)


def _reaped(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _copied(
    variables: Mapping[str, str], descriptors: Sequence[int], requests: socket.socket, messages: Connection
) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    die_too = dying_with(os.getpid())
    pid = os.fork()
    if pid == 0:
        try:
            die_too()
            requests.close()
            messages.close()
            _be_rank(variables, *descriptors)
        finally:
            os._exit(0)  # what this process would do at its end is the business of the one it was copied from
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def _be_rank(variables: Mapping[str, str], tasks: int, answers: int, output: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.update(variables)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()  # which Python itself does with ``random``; else all ranks would draw the same
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    serve(tasks, answers)
