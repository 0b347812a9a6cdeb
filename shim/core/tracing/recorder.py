"""The file into which this process records, and the one recorder that has it open."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from hashlib import sha256
from typing import Any

from shim.core.job.variables import REHEARSED, Variables
from shim.core.tracing.layout import MAGIC, SUFFIX, VERSION, definition_record
from shim.errors import ArgumentError

_MOST_OF_REHEARSALS = 1 << 16  # which answer with them in the next pass

_recorder: Recorder | None = None
_early: list[dict[str, Any]] = []  # what was noted before there was a recorder


def recorder_of(rank: int, size: int, key: str) -> Recorder | None:
    """Return what records this process's calls, None where ``SHIM_TRACE`` is not set. The first call says which rank of which job it is."""
    global _recorder
    variables = Variables(os.environ)
    folder = variables.get("SHIM_TRACE")
    if folder is None:
        return None
    folder = os.path.abspath(folder)
    if _recorder is None or _recorder.process != os.getpid() or _recorder.folder != folder:
        digests = variables.get("SHIM_TRACE_DIGESTS") or "0"
        if not digests.isdecimal() or int(digests) >= 1 << 64:
            raise ArgumentError(f"SHIM_TRACE_DIGESTS must be 0, 1, or another key of 64 bits, got {digests!r}")
        _recorder = Recorder(folder, rank, size, key, int(digests))
        while _early:
            _recorder.define(_early.pop(0))
    return _recorder


def name_world(token: str) -> None:
    """Note the name of this process's world, which its ranks have in common and no other run has."""
    note({"kind": "world", "token": sha256(token.encode()).hexdigest()[:16]})


def note(content: dict[str, Any]) -> None:
    """Add *content* to this process's recording, where there is one or will be."""
    if _recorder is not None and _recorder.process == os.getpid():
        _recorder.define(content)
    elif _recorder is None and os.environ.get("SHIM_TRACE"):
        _early.append(content)


class Recorder:
    """Writes definitions to the file of this process; ``calls`` writes the calls to it, as ``shim._native.CallRecords`` does.

    What is written stays if the process is killed. Any thread may record, but no forked child does so here.
    """

    def __init__(self, folder: str, rank: int, size: int, key: str, digest_key: int) -> None:
        from shim._native import CallRecords  # here, as core can be imported without it

        self.process = os.getpid()
        self.folder = folder
        self.digest_key = digest_key  # 0 for none
        # Bytes of integers that have digests; 0: all data has.
        self.most = _MOST_OF_REHEARSALS if os.environ.get(REHEARSED) else 0
        self.path, file = _new_file(folder, rank)
        self.calls = CallRecords(file)
        self._lock = threading.RLock()
        self._definitions = 0
        self._errors: dict[tuple[str, str], int] = {}
        self.calls.append(MAGIC)
        self.define(_header(rank, size, key, digest_key))
        atexit.register(self._close)

    def define(self, content: dict[str, Any]) -> int:
        """Append a definition, and return its number."""
        with self._lock:
            self.calls.append(definition_record(content))
            self._definitions += 1
            return self._definitions - 1

    def error(self, error: BaseException) -> int:
        """Return the number of the definition of *error*."""
        name, text = type(error).__name__, str(error)[:4000]
        number = self._errors.get((name, text))
        if number is None:
            number = self._errors[name, text] = self.define({"kind": "error", "class": name, "text": text})
        return number

    def _close(self) -> None:
        """Say that the program has come to its end, and cut the file to its size."""
        if self.process == os.getpid():
            self.define({"kind": "end", "clock": time.monotonic_ns()})
            self.calls.close()

    def leave_to_parent(self) -> None:
        """Record nothing more in this process, a forked child."""
        self.calls.leave()
        self._lock = threading.RLock()


def _leave_to_parent() -> None:
    if _recorder is not None:
        _recorder.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


def _header(rank: int, size: int, key: str, digest_key: int) -> dict[str, Any]:
    return {
        "kind": "header",
        "version": VERSION,
        "rank": rank,
        "size": size,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "time": time.time(),  # both clocks at once
        "clock": time.monotonic_ns(),
        "clock_offset": 0,  # nanoseconds to add to this host's clock, to have that of rank 0
        "command": [str(word) for word in sys.argv],
        "job": sha256(key.encode()).hexdigest()[:16],
        "digests": digest_key,
    }


def _new_file(folder: str, rank: int) -> tuple[str, int]:
    """Create the file of *rank* in *folder*; later runs and restarts get a number each."""
    try:
        os.makedirs(folder, exist_ok=True)
        run = 1
        while True:
            name = f"rank{rank}{f'.{run}' if run > 1 else ''}{SUFFIX}"
            path = os.path.join(folder, name)
            with suppress(FileExistsError):
                return path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            run += 1
    except OSError as error:
        raise ArgumentError(
            f"SHIM_TRACE must name a folder in which files can be made, got {folder}: {error.strerror}\n"
            "Create the folder, or name another one."
        ) from None
