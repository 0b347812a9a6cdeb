"""The ranks' output on its way to the launcher's: whole lines, each with its rank in front, tracebacks without this project's frames.

In the end it tells the failure of a job: by which rank, with what it wrote last, and which others told the same.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from shim.launch.endings import how_it_ended

_COLOURS = (36, 33, 32, 35, 34, 31)  # of terminals: cyan, yellow, green, magenta, blue, red
_LONGEST_LINE = 1 << 20  # bytes; a longer one is broken
_LAST_LINES = 400  # how much of a rank's output is kept, to be shown again should it fail
_LAST_BYTES = 4096  # of each of these lines
_HELD = 2.0  # seconds in which a rank that has begun a traceback may end
_TRACEBACKS = (b"Traceback (most recent call last):", b"  + Exception Group Traceback (most recent call last):")
_IGNORED = b"Exception ignored "  # in what is called where nobody can catch it, as __del__ is; it ends nothing
_CHAINS = (b"The above exception was the direct cause", b"During handling of the above exception")
_OURS = tuple(
    b'  File "' + os.fsencode(os.path.join(os.path.dirname(os.path.dirname(__file__)), part, ""))
    for part in ("core", "frontends", "substitution")
)
_FOR_THE_PROGRAM = (b"shim.", b"KeyboardInterrupt")  # how the errors begin whose cause is the program
# What an error that all ranks raise says differently on each: who reads it, when, and where something lies in its memory.
_OF_ONE_RANK = re.compile(rb"\(rank \d+ of \d+[^()]*\)|  <- this rank$|[\d.]+ m?s ago|0x[0-9a-f]+")
_STDERR = 2


class OutputClosed(Exception):
    """Whoever read the launcher's output has closed it, or it cannot be written for the reason that is told."""


def prefix_of(rank: int, to: int) -> bytes:
    """Return what stands before a line of *rank*, coloured where the file descriptor *to* is a terminal."""
    plain = f"[{rank}]"
    if os.isatty(to) and not os.environ.get("NO_COLOR"):
        return f"\x1b[{_COLOURS[rank % len(_COLOURS)]}m{plain}\x1b[0m ".encode()
    return f"{plain} ".encode()


class RankOutput:
    """One stream of one rank, passed on line by line from the pipe *source* to the file descriptor *to*.

    With a *log* file, opened with *log_mode*, the bytes are also written there, as they are. The last lines are remembered. A traceback is
    held back until the rank ends, as another one may have written the same; ``show_held`` shows it, without our frames. What torch
    puts before each line of a traceback is left out.
    """

    def __init__(self, rank: int, source: IO[bytes], to: int, log: Path | None, log_mode: str) -> None:
        os.set_blocking(source.fileno(), False)
        self.source = source
        self.last_lines: deque[bytes] = deque(maxlen=_LAST_LINES)
        self.traceback_since: float | None = None
        self._held: list[bytes] = []
        self._held_since = 0.0  # the oldest line of these
        self._is_ignored = False  # the exception that is being told
        self._prefix = prefix_of(rank, to)
        self._torchs_prefix = f"[rank{rank}]: ".encode()
        self._has_torchs_prefix = False  # the traceback that is being read
        self._to = to
        self._log = None if log is None else open(log, log_mode, buffering=0)  # noqa: SIM115  # closed by close()
        self._unfinished = b""

    def pass_on(self) -> bool:
        """Pass on what is there; tell whether more may come. Raises OutputClosed where nobody reads any more."""
        try:
            text = os.read(self.source.fileno(), 1 << 16)
        except BlockingIOError:
            return True
        if self._log is not None:
            self._log.write(text)
        *lines, self._unfinished = (self._unfinished + text).split(b"\n")
        if self._unfinished and (not text or len(self._unfinished) > _LONGEST_LINE):
            lines.append(self._unfinished)
            self._unfinished = b""
        self._take(lines)
        return bool(text)

    def pass_on_rest(self) -> None:
        """Pass on what is left when the rank has ended; its own children may hold the pipe open for longer."""
        while self._readable() and self.pass_on():
            pass
        if self._unfinished:
            line, self._unfinished = self._unfinished, b""
            self._take([line])

    @property
    def held_until(self) -> float:
        """When what is held back is to be shown, in seconds of ``time.monotonic``; infinity where there is nothing."""
        return self._held_since + _HELD if self._held else float("inf")

    @property
    def holds_last_lines(self) -> bool:
        """Whether the last lines are a traceback of which nothing has been shown."""
        return 0 < len(self.last_lines) <= len(self._held)

    def show_held(self, but_last_lines: bool = False) -> None:
        """Show what is held back, *but* for the *last lines* where these are told elsewhere."""
        held, self._held = self._held, []
        self._show(without_our_frames(held[: len(held) - len(self.last_lines)] if but_last_lines else held))

    def _show(self, lines: list[bytes]) -> None:
        if lines:
            write_all(self._to, b"".join(self._prefix + line + b"\n" for line in lines))

    def _take(self, lines: Iterable[bytes]) -> None:
        self._show([line for line in map(self._without_torchs_prefix, lines) if not self._holds(line)])

    def _without_torchs_prefix(self, line: bytes) -> bytes:
        rest = line.removeprefix(self._torchs_prefix)
        self._has_torchs_prefix = rest != line and (self._has_torchs_prefix or rest.startswith(_TRACEBACKS))
        return rest if self._has_torchs_prefix else line

    def _holds(self, line: bytes) -> bool:
        """Remember *line*, and tell whether it is held back."""
        began = self.traceback_since
        if not self._remember(line):
            return False
        if self._held or self.traceback_since != began:
            self._held_since = self._held_since if self._held else time.monotonic()
            self._held.append(line)
        return bool(self._held)

    def _readable(self) -> bool:
        return bool(select.select([self.source], [], [], 0)[0])

    def _remember(self, line: bytes) -> bool:
        if self._is_of_ignored(line):
            return False
        if line.startswith(_TRACEBACKS) and not self._is_chained():
            self.last_lines.clear()
            self.traceback_since = time.monotonic()
        self.last_lines.append(line[:_LAST_BYTES])
        return True

    def _is_of_ignored(self, line: bytes) -> bool:
        """Tell whether *line* is of an exception that is ignored: its head, its traceback, or the line that names it, which is the last."""
        if line.startswith(_IGNORED):
            self._is_ignored = True
            return True
        was_ignored = self._is_ignored
        self._is_ignored = was_ignored and line.startswith((b" ", *_TRACEBACKS))
        return was_ignored

    def _is_chained(self) -> bool:
        return any(line.startswith(_CHAINS) for line in list(self.last_lines)[-2:])

    def close(self) -> None:
        self.source.close()
        if self._log is not None:
            self._log.close()


def write_all(to: int, text: bytes) -> None:
    """Write *text* at once. Raises OutputClosed where nobody reads any more, or it cannot be written, with the reason then."""
    try:
        while text:
            text = text[os.write(to, text) :]
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        raise OutputClosed(error.strerror) from None


def without_our_frames(lines: Iterable[bytes]) -> list[bytes]:
    """Return *lines*, in whose tracebacks of interrupts and of errors of this project the frames within it are left out; others may be errors of ours."""
    kept: list[bytes] = []
    whole: list[bytes] = []  # of the traceback that is being read
    cut: list[bytes] = []
    hides = False
    for line in lines:
        if line.startswith(b"  "):
            if line.startswith(b"  File "):
                hides = line.startswith(_OURS)
            whole.append(line)
            if not hides:
                cut.append(line)
        else:
            kept += cut if cut and line.startswith(_FOR_THE_PROGRAM) else whole
            kept.append(line)
            whole, cut, hides = [], [], False
    return kept + whole


def what_it_says(lines: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return what is equal for the *lines* of two ranks that have told the same."""
    return tuple(_OF_ONE_RANK.sub(b"", line) for line in lines)


@dataclass(frozen=True)
class Failure:
    """A host's *rank* that failed first there, with *status* (negative: a death by signal), and the *last_lines* of its stderr.

    The ranks *same* have told the same. *is_alone* where the job has one rank. Of a *victim*, another rank's failure was the cause;
    one that *was_told_to_end* had not failed before.
    """

    rank: int
    status: int
    last_lines: Sequence[str]
    same: Sequence[int] = ()
    is_alone: bool = False
    is_victim: bool = False
    was_told_to_end: bool = False


def first_of_all(failures: Sequence[Failure]) -> Failure:
    """Return which of the hosts' *failures*, in the order in which they were told, is the cause of the others."""
    return min(failures, key=lambda failure: (failure.was_told_to_end, failure.is_victim))


def tell(failure: Failure, others: Sequence[Failure] = ()) -> None:
    """Say on stderr how the rank that failed first did, and which have told the same; before that, what else those of *other* hosts have told."""
    same = list(failure.same)
    for other in others:
        if other.last_lines and what_it_says(_lines_of(other)) == what_it_says(_lines_of(failure)):
            same += other.rank, *other.same
        else:
            write_all(_STDERR, _shown(other) + told_the_same(other.same))
    how = how_it_ended(failure.status)
    if failure.is_alone:
        write_all(_STDERR, f"shim run: rank {failure.rank} {how}\n".encode())
        return
    what = "; what it wrote to stderr last:" if failure.last_lines else ", and wrote nothing to stderr"
    text = f"shim run: rank {failure.rank} failed first: it {how}{what}\n".encode()
    write_all(_STDERR, text + _shown(failure) + told_the_same(same))


def told_the_same(ranks: Sequence[int]) -> bytes:
    """Return the line that says which *ranks* have told what stands before it; nothing where none has."""
    return f"shim run: rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}: the same\n".encode() if ranks else b""


def _shown(failure: Failure) -> bytes:
    prefix = prefix_of(failure.rank, _STDERR)
    return b"".join(prefix + line + b"\n" for line in without_our_frames(_lines_of(failure)))


def _lines_of(failure: Failure) -> list[bytes]:
    return [line.encode(errors="surrogateescape") for line in failure.last_lines]
