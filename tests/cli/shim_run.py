"""The command ``shim run`` as a process, and what has become of its ranks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0  # seconds


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MASTER_PORT")}
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"} | changes


def start(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shim", "run", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() if env is None else env,
        cwd=cwd,
        preexec_fn=heed_signals,
    )


def heed_signals() -> None:
    """Undo what this process inherited, which may have been started by nohup or in the background."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def run(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    with start(*arguments, env=env, cwd=cwd) as process:
        try:
            stdout, stderr = process.communicate(timeout=DEADLINE)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def read_pids(process: subprocess.Popen[str], size: int) -> list[int]:
    """Return the process ids that *size* ranks print, in rank order."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(size)]
    found = [re.fullmatch(r"\[(\d+)\] pid (\d+)\n", line) for line in lines]
    pids = {int(match[1]): int(match[2]) for match in found if match}
    return [pids[rank] for rank in range(size)]


def assert_gone(pids: Sequence[int], within: float = 5.0) -> None:
    """Fail unless all processes have ended within so many seconds."""
    until = time.monotonic() + within
    while alive := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"still running: {alive}"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
