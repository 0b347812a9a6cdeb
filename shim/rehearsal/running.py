"""Runs the ranks of a rehearsal, each as a copy of this process, which has imported what the program imports."""

from __future__ import annotations

import os
import random
import runpy
import signal
import sys
import threading
import time
import weakref
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from shim.core.engines.rehearsal import known_values
from shim.core.job.stores.rehearsed import others
from shim.core.job.variables import REHEARSED
from shim.core.tracing.layout import SUFFIX
from shim.core.tracing.recorder import note
from shim.errors import ArgumentError
from shim.launch.endings import dying_with
from shim.launch.identity import Share, environment_of_share
from shim.rehearsal.made_up import watch_readings
from shim.rehearsal.preparing import Plan
from shim.rehearsal.values import Values
from shim.trace.reading import read_rank

_LAST_BYTES = 4000  # of what a rank has printed, to be shown should it fail
_PAUSE = 0.002  # seconds between two looks at the ranks that run
_NOT_STARTED = 70  # exit status of a copy that could not begin


@dataclass(frozen=True)
class Ended:
    """How a rank's program ended: *status* is negative for a death by signal."""

    rank: int
    status: int
    is_late: bool
    last_lines: Sequence[str]


def run_all(plan: Plan, values: Values, told: Callable[[int], object] = lambda number: None) -> list[Ended]:
    """Run the ranks of *plan*, and return how those ended that failed. After each end, *told* is given how many have ended.

    What each has passed is put into *values*, from which those answer that begin later. The first runs alone: others often wait for it.
    Call it in a prepared process of one thread.
    """
    for old in plan.folder.glob(f"rank*{SUFFIX}"):  # of the pass before
        old.unlink()
    waiting, failed, ended = list(reversed(plan.ranks)), [], 0
    running: dict[int, tuple[int, float]] = {}  # by process: the rank, and until when
    try:
        while waiting or running:
            while waiting and len(running) < (plan.at_once if ended else 1):
                rank = waiting.pop()
                values.begin(rank)
                running[_started(plan, rank)] = rank, time.monotonic() + plan.timeout
            process, how, is_late = _next_end(running)
            rank, _ = running.pop(process)
            _end_group(process)
            ended += 1
            with suppress(ArgumentError):  # of a rank that was killed, or has entered no world
                values.add(read_rank(plan.folder / f"rank{rank}{SUFFIX}"))
            told(ended)
            if how or is_late:
                failed.append(Ended(rank, how, is_late, _last_lines(plan.output_of(rank))))
    finally:
        for process in running:
            _end_group(process)
            os.waitpid(process, 0)
    return sorted(failed, key=lambda one: one.rank)


def _started(plan: Plan, rank: int) -> int:
    """Start *rank* as a copy of this process, and return its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    end_with_this = dying_with(os.getpid(), in_group=True)
    process = os.fork()
    if process:
        return process
    status = _NOT_STARTED
    try:
        end_with_this()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        file = os.open(plan.output_of(rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        for stream in (1, 2):
            os.dup2(file, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = _run(plan, rank)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(status)  # what the command has open is its own


def _run(plan: Plan, rank: int) -> int:
    """Run the program as *rank*, and return its exit status."""
    host = rank // plan.per_host
    first = host * plan.per_host
    share = Share(first, min(plan.per_host, plan.size - first), plan.size, host, -(-plan.size // plan.per_host))
    told = environment_of_share(share, rank, f"rehearsal{plan.size}", ())
    told |= {REHEARSED: str(plan.size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    told |= {
        "SHIM_TRACE": str(plan.folder),
        "SHIM_TRACE_DIGESTS": plan.digest_key,
        "SHIM_TRACE_VALUES": str(plan.values),
    }
    os.environ.clear()
    os.environ.update(told)
    for finalizer in getattr(weakref.finalize, "_registry", ()):
        finalizer.atexit = False  # what these clear away is the command's, and takes as long as a small program
    others.known, others.told = known_values.stored, _note_stored
    sys.argv = list(plan.program)
    status = 0
    try:
        _seed(f"{plan.digest_key} {rank}")
        with _memory_of(plan, rank - first, share.count):
            _run_program(plan)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if status and not isinstance(leaving.code, int):
            sys.stderr.write(f"{leaving.code}\n")
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    return status if _finish() else 1


def _seed(text: str) -> None:
    """Have what is random differ from rank to rank, as in processes of their own, and be the same in each pass."""
    random.seed(text)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(random.getrandbits(32))
    if torch := sys.modules.get("torch"):
        torch.manual_seed(random.getrandbits(63))
    if paddle := sys.modules.get("paddle"):
        paddle.seed(random.getrandbits(31))


def _memory_of(plan: Plan, local_rank: int, per_host: int) -> AbstractContextManager[None]:
    watch_readings()
    if not plan.without_memory:
        return nullcontext()
    from shim.rehearsal.without_memory import without_memory

    return without_memory(local_rank, per_host)


def _run_program(plan: Plan) -> None:
    if plan.as_installed:
        from shim.substitution.program import run_module, run_script

        (run_module if plan.is_module else run_script)(plan.program[0], list(plan.program[1:]))
    elif plan.is_module:
        runpy.run_module(plan.program[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(plan.program[0], run_name="__main__")


def _note_stored(where: str, key: bytes, value: bytes) -> None:
    note({"kind": "stored", "where": where, "key": b64encode(key).decode(), "value": b64encode(value).decode()})


def _finish() -> bool:
    """Do what the end of a process of Python does."""
    import atexit

    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for the program's threads, and has no other name
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return False
    return True


def _end_group(process: int) -> None:
    """End what a rank has left running, which is in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def _next_end(running: dict[int, tuple[int, float]]) -> tuple[int, int, bool]:
    """Wait until one of the processes has ended, and return which, how, and whether it was too late."""
    while True:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process in running:
            return process, os.waitstatus_to_exitcode(status), False
        late = next((one for one, (_, until) in running.items() if time.monotonic() > until), None)
        if late is not None:
            _end_group(late)
            os.waitpid(late, 0)
            return late, -signal.SIGKILL, True
        if not process:
            time.sleep(_PAUSE)


def _last_lines(path: Path) -> list[str]:
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        return file.read().decode(errors="replace").splitlines()
    return []
