"""One rank of a command: its process, its output, and how it ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from shim.launch.endings import ENDING, dying_with
from shim.launch.output import RankOutput, what_it_says

_STDOUT, _STDERR = 1, 2
_VICTIM = re.compile(rb"[ |]*[\w.]*PeerLostError(:|$)")  # a traceback's line of the error, which hints may follow
_VICTIM_IN_DDP = re.compile(rb"RuntimeError: Got the following error when running the callback: [\w.]*PeerLostError:")
_ERROR = re.compile(rb"[\w.]+(Error|Exception|Exit|Interrupt)(:|$)")


def has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
        return True
    return False


class RankProcess:
    """One process in a group of its own, so that a signal reaches it and what it has started once.

    In a session of its own too where there is a terminal, which stops what reads from it in another group than the shell's. Elsewhere not:
    Linux schedules sessions as wholes, so that a rank that waits cannot yield its processor to one of another session.
    """

    def __init__(
        self, rank: int, command: Sequence[str], environment: Mapping[str, str], log_dir: Path | None, log_mode: str
    ) -> None:
        self.rank = rank
        self.ended_at: float | None = None
        self.status: int | None = None  # as of subprocess: negative for a death by signal
        self.was_told_to_end = False
        in_session = has_terminal()
        self.process = subprocess.Popen(
            command,
            stdin=None if rank == 0 else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=in_session,
            preexec_fn=dying_with(os.getpid(), in_group=not in_session),
        )
        self.outputs = [
            RankOutput(rank, stream, to, log_dir and log_dir / f"rank{rank}.{name}", log_mode)
            for stream, to, name in (
                (self.process.stdout, _STDOUT, "stdout"),
                (self.process.stderr, _STDERR, "stderr"),
            )
            if stream is not None
        ]
        self.pidfd = os.pidfd_open(self.process.pid)

    def send(self, number: int) -> None:
        """Send a signal to the process and its children; a stopped one goes on, to be able to end.

        It is not reaped before ``close``, so the id is its own.
        """
        with suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(self.process.pid, number)
            if number in ENDING:
                os.killpg(self.process.pid, signal.SIGCONT)

    def see_end(self) -> None:
        """Note how the process ended, and leave it unreaped."""
        ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        self.ended_at = time.monotonic()
        self.status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    @property
    def has_raised(self) -> bool:
        return self.outputs[-1].traceback_since is not None

    @property
    def failed_at(self) -> float:
        """When the rank wrote its traceback, which is before others can see it gone; else when it ended."""
        since = self.outputs[-1].traceback_since
        return since if since is not None else self.ended_at or 0.0

    @property
    def is_victim(self) -> bool:
        """Tell whether this rank ended by itself, with a traceback of an error that only another one's failure causes."""
        if not self.has_raised or (self.status or 0) < 0:
            return False
        lines = self.outputs[-1].last_lines
        last = next((line for line in reversed(lines) if _ERROR.match(line)), b"")
        return bool(_VICTIM_IN_DDP.match(last)) or any(_VICTIM.match(line) for line in list(lines)[-4:])

    @property
    def last_words(self) -> tuple[bytes, ...]:
        """What its traceback says, as far as that is equal on ranks that say the same; nothing where it wrote none."""
        return what_it_says(self.outputs[-1].last_lines) if self.has_raised else ()

    def close(self) -> None:
        self.process.wait()
        os.close(self.pidfd)
        for output in self.outputs:
            output.close()
