"""Processes of their own for the parts of a run: each has a limit, and is ended with all that it has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

RESULT = "FIRST_RUN_RESULT"  # the variable that names the file for what a step finds
SECONDS = "FIRST_RUN_SECONDS"  # the variable that tells a step how long it may take
_TOKEN = "FIRST_RUN_TOKEN"  # the variable that whatever a step starts inherits, in whichever session
_FOR_LEAVING = 1.5  # seconds for what a step has started to end after it
_FOR_DYING = 5.0  # seconds; a process that waits for a broken driver cannot be killed
_FIRST, _LAST, _COLUMNS = 30, 50, 400  # lines of the output that are told on failure, and of each line


class StepProcess:
    """*command* in a session, a folder and *seconds* of its own.

    What it writes to the file that RESULT names becomes part of its outcome.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="first-run-", ignore_cleanup_errors=True)
        self._result, self._log = (Path(self._folder.name, name) for name in ("result.json", "log"))
        self._token = f"{_TOKEN}={uuid4().hex}"
        name, _, value = self._token.partition("=")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder.name,  # where no source tree can be taken for the installed package
                env={**os.environ, name: value, RESULT: str(self._result), SECONDS: str(seconds)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._began = time.monotonic()
        self._until = self._began + seconds

    def outcome(self) -> dict[str, Any] | None:
        """Return how it has ended, once it has ended or its time is up, and None before."""
        status = self._process.poll()
        if status is None and time.monotonic() < self._until:
            return None
        seconds = time.monotonic() - self._began
        left = self.end()
        found = self._found()
        told = {"status": found.pop("status", "passed"), "seconds": round(seconds, 2), **found}
        if status != 0:
            told["status"] = "timeout" if status is None else "failed"
        if told["status"] in ("failed", "timeout"):
            told["said"] = self._said()
        if left:
            told["left_behind"] = left
        self._folder.cleanup()
        return told

    def end(self) -> list[str]:
        """Kill the process and all that it has started. Returns the programs that it had left behind, if it ended by itself."""
        by_itself = self._process.poll() is not None
        until = time.monotonic() + _FOR_LEAVING
        while by_itself and self._members() and time.monotonic() < until:
            time.sleep(0.02)
        left = [_program(pid) for pid in self._members()] if by_itself else []
        until = time.monotonic() + _FOR_DYING
        while (members := self._members()) and time.monotonic() < until:
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, until - time.monotonic()))
        return left

    def _members(self) -> list[int]:
        """Return the processes that have the step's token: it and all that descends from it."""
        token, found = self._token.encode(), []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    variables = (folder / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue  # another user's, or it has ended
                if token in variables:
                    found.append(int(folder.name))
        return found

    def _found(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._result.read_text())
        except (OSError, ValueError):
            return {}
        return found

    def _said(self) -> list[str]:
        lines = self._log.read_text(errors="replace").splitlines()
        return [line[:_COLUMNS] for line in [*lines[:_FIRST], *lines[_FIRST:][-_LAST:]]]


def _program(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return f"process {pid}"
    return b" ".join(words).decode(errors="replace")[:200]
