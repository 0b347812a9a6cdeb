"""What a rank knows of its meeting: where it is, how long it may last, and where the hub may be."""

from __future__ import annotations

import math
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shim.core.control.addresses import Place, is_loopback, places, taken_apart, unix_place
from shim.core.sockets.frames import Fields
from shim.errors import CollectiveTimeoutError, PeerLostError, StateError

USUAL_GAP = 30.0  # seconds; a spanning tree or a machine that moves is a matter of a few of them
_FOR_A_NAME = 30.0  # seconds, in which a host that is being started may get its name


@dataclass(frozen=True)
class Meeting:
    """What a rank has to know of its job to meet the others.

    ``key`` is the job's name, the same on all ranks. ``address`` is the host:port at which rank 0 waits, empty where all ranks are on one host.
    ``secret`` is what SHIM_SECRET gives: without one nothing but this host's own addresses may be used. ``facts`` are told to all others.
    ``interface`` is what SHIM_INTERFACE names: the network interface that the connections have to use. ``gap`` is for how many seconds
    a host may not answer before its ranks are lost.
    """

    rank: int
    size: int
    key: str
    address: str = ""
    secret: bytes = field(default=b"", repr=False)
    facts: bytes = b""
    interface: str = ""
    gap: float = USUAL_GAP


class Patience:
    """The *timeout* of a meeting, and the one warning on standard error when it lasts longer than *warn_after* seconds; 0 means no warning."""

    def __init__(self, job: Meeting, timeout: float, warn_after: float) -> None:
        now = time.monotonic()
        self.timeout = timeout
        self.deadline = now + timeout
        self._unknown_until = math.inf
        self._me = f"rank {job.rank} of {job.size}"
        self._warn_after = warn_after
        self._warning_due = now + warn_after if warn_after > 0 else float("inf")

    def may_name_appear(self) -> bool:
        """Tell whether a name that no host has may yet become known: for half a minute after this was first asked."""
        self._unknown_until = min(self._unknown_until, time.monotonic() + _FOR_A_NAME)
        return time.monotonic() < self._unknown_until

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


def told_error(fields: Fields, me: str) -> Exception:
    """Return the error that the hub tells of."""
    name, ranks, text = fields.text(), tuple(fields.ranks()), fields.rest().decode(errors="replace")
    first, newline, rest = text.partition("\n")
    text = f"{first} {me}{newline}{rest}"
    if name == "StateError":
        return StateError(text)
    error = CollectiveTimeoutError(text) if name == "CollectiveTimeoutError" else PeerLostError(text)
    error.ranks = ranks
    return error


def hub_places(job: Meeting, failures: dict[str, str], patience: Patience) -> Sequence[Place]:
    """Return where the hub may be; none, and why in *failures*, while its name may become known.

    Raises StateError where that needs a secret, and there is none, and where the name stays unknown.
    """
    if not job.address:
        return [unix_place(job.key)]
    host, _ = taken_apart(job.address)  # which no place is called: those have ports
    try:
        found = places(job.address, for_other_hosts=bool(job.secret))
    except (OSError, UnicodeError) as error:
        failures[host] = f"no host has that name ({getattr(error, 'strerror', None) or error})"
        if not patience.may_name_appear():
            raise StateError(
                f"rank {job.rank} of {job.size}: the ranks meet at {job.address}, and {failures[host]} on host {socket.gethostname()}\n"
                "Give a name or address of rank 0's host that every host knows."
            ) from None
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
