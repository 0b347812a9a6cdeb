"""Python, started as a copy of a process that has imported the frameworks: for tests of what programs do. The ranks of ``shim run`` are copies too.

A process that imports the frameworks itself is busy for two to five seconds before its first call. What copies do not show is how Python
starts and ends, and which modules it has imported: tests of these use processes of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import io
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from shim.conformance.kinds import QUIET
from shim.launch import processes
from shim.launch.endings import dying_with
from shim.launch.original import Copy, Original
from shim.launch.pool import RankPool

# In this order they bear each other.
_MODULES = ("mindspore", "paddle", "torch", "torch._dynamo", "paddle.distributed", "torch.distributed")
_original: Original | None = None  # of which all programs of this process are copies
_own_path: list[str] = []  # where Python itself looks for modules; in copies


def run_python(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Return what becomes of ``python ARGUMENTS``, as ``subprocess.run`` does: in *cwd*, with *env* in place of this process's environment."""
    environment = dict(os.environ if env is None else env)
    with RankPool(1, original=original()) as pool:
        folder = str(cwd or Path.cwd())
        given = (arguments, folder, environment, _path_of_python(), timeout)
        [outcome] = pool.run(f"{__name__}:_run", *given, deadline=timeout + 10)
    if outcome.error is not None:
        raise AssertionError(outcome.error)
    return subprocess.CompletedProcess([sys.executable, *arguments], *outcome.value)


def original() -> Original:
    """Return the process of which programs are copies. It is started when the first is."""
    global _original
    if _original is None:
        _original = Original([name for name in _MODULES if _is_installed(name.partition(".")[0])], QUIET)
    return _original


def _is_installed(package: str) -> bool:
    found = find_spec(package)
    return found is not None and found.origin is not None  # a folder of tests that has the name has no origin


class SharedOriginal:
    """Stands for an ``Original`` of a test's own, whatever its modules: copies are those of ``original()``."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment or {}

    def start(self) -> None:
        original().start()

    def copy(self, tasks: int, answers: int, output: int, variables: Mapping[str, str]) -> Copy:
        return original().copy(tasks, answers, output, {**self._environment, **variables})

    def __enter__(self) -> SharedOriginal:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def close() -> None:
    """End the process of which programs are copies, if there is one."""
    if _original is not None:
        _original.close()


@cache
def _path_of_python() -> list[str]:
    command = [sys.executable, "-I", "-c", "import sys; print(*sys.path, sep='\\n')"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def _run(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str], path: list[str], timeout: float
) -> tuple[int, str, str]:
    """Run a copy of this process, and return its exit status and what it has written. One that is late is killed."""
    _own_path[:] = path
    os.chdir(folder)
    processes.subprocess = types.SimpleNamespace(  # type: ignore[assignment]  # what the launcher uses of it
        Popen=_Rank, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL
    )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull, "rb") as nothing:
        standard = (nothing.fileno(), out.fileno(), err.fileno())
        pid = _copy(arguments, environment, standard, dying_with(os.getpid()))
        is_late = not _has_ended(pid, timeout)
        if is_late:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if is_late:
        raise TimeoutError(f"python {arguments} had not ended after {timeout:g} s\n{stdout}\n{stderr}")
    return status, stdout, stderr


def _has_ended(pid: int, timeout: float) -> bool:
    with os.fdopen(os.pidfd_open(pid)) as process:
        return bool(select.select([process], [], [], timeout)[0])


def _copy(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    standard: Sequence[int],
    first: Callable[[], None],
    *,
    in_session: bool = False,
) -> int:
    """Return the process id of a copy of this process, which does *first* and then what ``python ARGUMENTS`` does."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            if in_session:
                os.setsid()
            first()
            for number, descriptor in enumerate(standard):
                os.dup2(descriptor, number)
            _replace_environment(environment)
            _be_python(list(arguments))
        finally:
            os._exit(70)  # is reached only where this module is wrong
    return pid


def _replace_environment(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


class _Rank:
    """What the launcher uses of ``subprocess.Popen``."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int | None,
        env: Mapping[str, str],
        start_new_session: bool,
        preexec_fn: Callable[[], None],
        **as_always: object,
    ) -> None:
        assert command[0] == sys.executable
        assert as_always == {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
        out, out_of_rank = os.pipe()
        err, err_of_rank = os.pipe()
        standard = (0, out_of_rank, err_of_rank)  # what this process reads is nothing
        self.pid = _copy(command[1:], env, standard, preexec_fn, in_session=start_new_session)
        os.close(out_of_rank)
        os.close(err_of_rank)
        self.stdout, self.stderr = os.fdopen(out, "rb", 0), os.fdopen(err, "rb", 0)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _be_python(arguments: list[str]) -> None:
    """Do what Python does when it is started with *arguments*, and end the process."""
    _forget_the_launcher()
    while arguments[0] == "-W":
        warnings.simplefilter(arguments[1])  # type: ignore[arg-type]
        del arguments[:2]
    kind = arguments.pop(0) if arguments[0] in ("-m", "-c") else ""
    program, *rest = arguments
    first = {"-m": os.getcwd(), "-c": ""}.get(kind, os.path.dirname(os.path.abspath(program)))
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [first, *given, *_own_path]
    sys.argv[:] = ["-c" if kind == "-c" else program, *rest]
    runs = {"-m": _run_module, "-c": _run_command}.get(kind, _run_script)
    status = _status_of(lambda: runs(program))
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]  # waits for the program's threads
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _forget_the_launcher() -> None:
    """Undo what the process that this one is copied from has set, be it the pool's or a launcher."""
    faulthandler.unregister(signal.SIGUSR1)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = io.TextIOWrapper(os.fdopen(descriptor, "wb", 0, closefd=False), encoding="utf-8", write_through=True)
        setattr(sys, name, stream)
    sys.modules["numpy"].random.seed()


def _run_module(name: str) -> None:
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_script(path: str) -> None:
    path = os.path.abspath(path)
    _run_source(Path(path).read_bytes(), path, file=path)


def _run_command(source: str) -> None:
    _run_source(source, "<string>")


def _run_source(source: str | bytes, name: str, file: str | None = None) -> None:
    main = types.ModuleType("__main__")
    if file is not None:
        main.__file__ = file
    sys.modules["__main__"] = main
    exec(compile(source, name, "exec"), main.__dict__)


def _status_of(program: Callable[[], None]) -> int:
    """Return the exit status of *program*, whose traceback is shown where it raises."""
    try:
        program()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException as error:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
            traceback = traceback.tb_next
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        return 1
    return 0
