"""What a rank knows of its meeting: where it is, how long it may last, and where the hub may be."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shim.core.control.places import Place, is_loopback, places, taken_apart, unix_place
from shim.errors import CollectiveTimeoutError, StateError

__all__ = ["Meeting", "Patience", "hub_places", "shown_hosts", "too_late"]


@dataclass(frozen=True)
class Meeting:
    """What a rank has to know of its job to meet the others.

    ``key`` is the job's name, the same on all ranks. ``address`` is the host:port at which rank 0 waits, empty where all ranks are on one host.
    ``secret`` is what SHIM_SECRET gives: without one nothing but this host's own addresses may be used. ``facts`` are told to all others.
    ``interface`` is what SHIM_INTERFACE names: the network interface that the connections have to use.
    """

    rank: int
    size: int
    key: str
    address: str = ""
    secret: bytes = field(default=b"", repr=False)
    facts: bytes = b""
    interface: str = ""


class Patience:
    """The *timeout* of a meeting, and the one warning on standard error when it lasts longer than *warn_after* seconds; 0 means no warning."""

    def __init__(self, job: Meeting, timeout: float, warn_after: float) -> None:
        now = time.monotonic()
        self.timeout = timeout
        self.deadline = now + timeout
        self._me = f"rank {job.rank} of {job.size}"
        self._warn_after = warn_after
        self._warning_due = now + warn_after if warn_after > 0 else float("inf")

    def left(self) -> float:
        """Return the seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def warn_if_due(self, text: Callable[[], str]) -> None:
        if time.monotonic() >= self._warning_due:
            self._warning_due = float("inf")
            if sys.stderr is not None:
                sys.stderr.write(f"shim: {self._me} has waited {self._warn_after:g} s: {text()}\n")
                sys.stderr.flush()


def too_late(text: str, ranks: Sequence[int]) -> CollectiveTimeoutError:
    """Return the error of a meeting to which *ranks* have not come."""
    error = CollectiveTimeoutError(text)
    error.ranks = tuple(ranks)
    return error


def hub_places(job: Meeting, failures: dict[str, str]) -> Sequence[Place]:
    """Return where the hub may be. Raises StateError where that needs a secret, and there is none."""
    if not job.address:
        return [unix_place(job.key)]
    host, _ = taken_apart(job.address)  # which no place is called: those have ports
    try:
        found = places(job.address, for_other_hosts=bool(job.secret))
    except (OSError, UnicodeError) as error:
        failures[host] = f"no host has that name ({getattr(error, 'strerror', None) or error})"
        return []
    failures.pop(host, None)
    safe = found if job.secret else [place for place in found if is_loopback(place)]
    if not safe:
        raise StateError(
            f"rank {job.rank} of {job.size}: the ranks meet at {job.address} ({shown_hosts(found)}), which other hosts can reach, "
            "and have no secret\nSet SHIM_SECRET to the same value on all hosts."
        )
    return safe


def shown_hosts(found: Sequence[Place]) -> str:
    return ", ".join(dict.fromkeys(str(place.address[0]) for place in found))
