"""How the failure of a job is told: by which rank, with what it wrote last, and which others told the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shim.launch.endings import how_it_ended
from shim.launch.output import prefix_of, write_all
from shim.launch.tracebacks import without_our_frames

__all__ = ["Failure", "first_of_all", "tell"]

_STDERR = 2


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


def tell(failure: Failure) -> None:
    """Say on stderr how the rank that failed first did, and which others have told the same."""
    how = how_it_ended(failure.status)
    if failure.is_alone:
        write_all(_STDERR, f"shim run: rank {failure.rank} {how}\n".encode())
        return
    lines = without_our_frames(line.encode(errors="surrogateescape") for line in failure.last_lines)
    what = "; what it wrote to stderr last:" if lines else ", and wrote nothing to stderr"
    prefix, same = prefix_of(failure.rank, _STDERR), failure.same
    text = f"shim run: rank {failure.rank} failed first: it {how}{what}\n".encode()
    others = f"shim run: rank{'s' * (len(same) > 1)} {', '.join(map(str, same))}: the same\n" if same else ""
    write_all(_STDERR, text + b"".join(prefix + line + b"\n" for line in lines) + others.encode())
