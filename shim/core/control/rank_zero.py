"""Rank 0's part in a meeting: it listens at the first free address, and waits in the hub for the others."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import time
from collections.abc import Sequence
from dataclasses import replace

from shim.core.control.addresses import Place, host_id
from shim.core.control.authentication import hash_of_key
from shim.core.control.control import Control
from shim.core.control.frames import Kind
from shim.core.control.hub import Hub
from shim.core.control.hub_search import HubSearch, shown_outcomes
from shim.core.control.links import HubLink
from shim.core.control.meeting import Meeting, Patience, hub_places, shown_hosts, told_error, too_late
from shim.core.control.peers import Peer, shown_ranks
from shim.core.job.hosts import addresses_of_interface, shown_interfaces
from shim.core.sockets.frames import Fields
from shim.core.sockets.listening import listening_at, peer_of
from shim.core.sockets.loop import Loop
from shim.errors import CollectiveTimeoutError, EngineError, ShimError, StateError

_FOR_AN_ANSWER = 2.0  # seconds that this process's own hub may take
_FOR_LATE_RANKS = 5.0  # seconds for which a meeting that has failed tells who comes


def meet_as_rank_zero(job: Meeting, patience: Patience) -> Control:
    """Open the hub of *job* and wait for the other ranks. Raises StateError and CollectiveTimeoutError, which those that came are told."""
    _check_files(job.size)
    try:
        listener, search = (None, _Search("")) if job.size == 1 else _listening(job, patience)
    except StateError as error:
        if job.interface:
            _turn_all_away(replace(job, interface=""), error, patience)
        raise
    control, hub = _opened(job, listener)
    try:
        while not control.met.wait(min(patience.deadline, time.monotonic() + 0.1)):
            patience.warn_if_due(lambda: _those_missing(job, hub, search)[0])
            if not patience.left():
                text, missing = _those_missing(job, hub, search)
                raise too_late(f"the ranks did not meet within {patience.timeout:g} s: {text}", missing)
        kind, body = control.met.answer
        if kind is Kind.FAILED:
            raise told_error(Fields(body), f"(rank 0 of {job.size})")
    except BaseException as error:
        _call_off(hub, error, patience)
        raise
    return control


def _opened(job: Meeting, listener: socket.socket | None) -> tuple[Control, Hub]:
    """Return rank 0's control connections, and the hub, which lets in who comes to *listener*."""
    control = Control(0, job.size)
    address = "127.0.0.1" if listener is None or listener.family == socket.AF_UNIX else str(listener.getsockname()[0])
    me = Peer(socket.gethostname(), host_id(), os.getpid(), address, job.facts)
    hub = Hub(Loop("shim control hub"), job.size, me, control.receive, job.gap)
    control.attach(HubLink(hub))
    hub.loop.call(hub.open, listener, hash_of_key(job.key), job.secret)
    hub.loop.start()
    return control, hub


def _turn_all_away(job: Meeting, error: StateError, patience: Patience) -> None:
    """Tell who comes to *job*'s address that rank 0 cannot meet there, where it can listen at all."""
    with contextlib.suppress(ShimError):
        listener, _ = _listening(job, Patience(job, 0, 0))
        _call_off(_opened(job, listener)[1], error, patience)


def _check_files(size: int) -> None:
    """Let rank 0's process have a file for each rank, as far as it may set that itself. Raises StateError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = size + 256
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise StateError(
            f"rank 0 needs a connection to each of {size} ranks, and its process may open only {hard} files\nRaise its limit: ulimit -n {needed}."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class _Search:
    """Where rank 0 listens, as messages show it, and which earlier places were taken."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.taken: list[Place] = []
        self.outcomes: dict[str, str] = {}


def _listening(job: Meeting, patience: Patience) -> tuple[socket.socket, _Search]:
    """Return a socket that listens at the first free place of the meeting."""
    pause = 0.01
    while True:
        search = _Search("")
        for place in _own_places(job, search.outcomes, patience):
            listener = _listening_at(job, place, search)
            if listener is not None:
                search.where = place.shown
                return listener, search
        _warn_of(search, patience)
        if not patience.left():
            raise CollectiveTimeoutError(
                f"rank 0 of {job.size} could not listen at {job.address or 'its unix socket'} within {patience.timeout:g} s: "
                f"{shown_outcomes(search.outcomes)}"
            )
        time.sleep(min(pause, patience.left()))
        pause = min(2 * pause, 0.25)


def _warn_of(search: _Search, patience: Patience) -> None:
    patience.warn_if_due(lambda: f"it cannot listen: {shown_outcomes(search.outcomes)}")


def _listening_at(job: Meeting, place: Place, search: _Search) -> socket.socket | None:
    """Return a socket that listens at *place*; None, and a note in *search*, where it is taken. Raises StateError on another host."""
    try:
        return listening_at(place.family, place.address)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise _not_here(job, place) from None
        is_taken = error.errno == errno.EADDRINUSE
        search.outcomes[place.shown] = _owner(place) if is_taken else f"failed ({error.strerror})"
        if is_taken:
            search.taken.append(place)
        return None


def _own_places(job: Meeting, failures: dict[str, str], patience: Patience) -> Sequence[Place]:
    """Return the places where rank 0 may listen; none, and the reason in *failures*, where the name is unknown."""
    found = hub_places(job, failures, patience)
    if not job.interface or not job.address or not found:
        return found
    mine = addresses_of_interface(job.interface)
    fitting = [place for place in found if place.address[0] in mine]
    if not fitting:
        raise StateError(
            f"SHIM_INTERFACE={job.interface} has {', '.join(mine)}, and the ranks meet at {job.address}, which is "
            f"{shown_hosts(found)} on host {socket.gethostname()}\nThe interfaces are {shown_interfaces()}."
        )
    return fitting


def _not_here(job: Meeting, place: Place) -> StateError:
    return StateError(
        f"the ranks meet at {job.address}, but {place.address[0]} is no address of rank 0's host {socket.gethostname()}\n"
        f"Give an address of the host where rank 0 runs. Its interfaces are {shown_interfaces()}."
    )


def _owner(place: Place) -> str:
    """Return what has taken *place*: of a unix socket the kernel tells, and only the same job's can have the name."""
    if place.family == socket.AF_UNIX:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            if probe.connect_ex(place.address) == 0:
                pid, uid = peer_of(probe)
                return f"process {pid} (uid {uid}) meets there, as rank 0 of a job of the same name"
    return "taken"


def _those_missing(job: Meeting, hub: Hub, search: _Search) -> tuple[str, list[int]]:
    """Return in words, and as numbers, who has not come, asked of the hub on its own thread."""
    found: list[tuple[list[int], list[str]]] = []
    hub.loop.call_and_wait(lambda: found.append((hub.missing(), hub.notes())), _FOR_AN_ANSWER)
    missing, notes = found[0] if found else ([], ["the hub's thread does not answer"])
    notes += _other_hubs(job, search)
    text = (
        f"{shown_ranks(missing)} {'has' if len(missing) == 1 else 'have'} not come to rank 0, "
        f"at {search.where} on host {socket.gethostname()}"
    )
    return text + "".join(f"\n  {note}" for note in notes), missing


def _other_hubs(job: Meeting, search: _Search) -> list[str]:
    """Return where another rank 0 of this job waits: the others may have gone there."""
    search_for_others = HubSearch(hash_of_key(job.key), {})
    found = (
        search_for_others.until(time.monotonic() + 0.5, lambda: search.taken, lambda: None) if search.taken else None
    )
    if found is None:
        return []
    sock, _ = found
    at = "{}:{}".format(*sock.getpeername()[:2])
    sock.close()
    return [f"another process waits at {at} as rank 0 of a job of this name, {job.key!r}"]


def _call_off(hub: Hub, error: BaseException, patience: Patience) -> None:
    """Tell those that came why there is no world, and end the hub. A mistake that waiting cannot correct is told for a moment to those that come late."""
    is_told = isinstance(error, EngineError | StateError)
    kind = type(error).__name__ if is_told else "PeerLostError"
    text = str(error) if is_told else f"rank 0 left the meeting ({type(error).__name__})"
    ranks = list(error.ranks) if isinstance(error, CollectiveTimeoutError) else [0]
    hub.loop.call_and_wait(lambda: hub.fail(kind, ranks, text), _FOR_AN_ANSWER)
    until = time.monotonic() + (min(_FOR_LATE_RANKS, patience.left()) if isinstance(error, StateError) else 0)
    while time.monotonic() < until and not hub.has_told_all():
        time.sleep(0.01)
    HubLink(hub).flush()
    hub.loop.call(hub.close)
    hub.loop.join(_FOR_AN_ANSWER)
