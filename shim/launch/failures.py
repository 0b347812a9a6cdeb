"""How the failure of a job is told: by which rank, with what it wrote last, and which others told the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shim.launch.endings import how_it_ended
from shim.launch.output import prefix_of, what_it_says, without_our_frames, write_all

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
