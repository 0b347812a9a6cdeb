"""How the ranks of a job come to have control connections: rank 0 opens a hub, and the others find it."""

from __future__ import annotations

import atexit
import errno
import os
import resource
import socket
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shim.core.control.authentication import PROTOCOL, REPLY_SIZE, Hello, Join, Reply, SessionKeys, Status, hash_of_key
from shim.core.control.control import Control
from shim.core.control.door import listen_at, other_version, peer_user
from shim.core.control.frames import Fields, Kind
from shim.core.control.hub import Hub
from shim.core.control.knocking import Knocking, seconds_left, shown_outcomes
from shim.core.control.links import HubLink, RankLink
from shim.core.control.loop import Loop
from shim.core.control.peers import Peer, packed_about, shown_ranks
from shim.core.control.places import (
    Place,
    address_of_interface,
    addresses_of_interface,
    host_id,
    is_loopback,
    places,
    shown_interfaces,
    unix_place,
)
from shim.errors import ArgumentError, CollectiveTimeoutError, EngineError, PeerLostError, StateError

__all__ = ["Meeting", "meet"]

_WARN_AFTER = 10.0  # seconds
_FOR_AN_ANSWER = 2.0
_open_controls: weakref.WeakSet[Control] = weakref.WeakSet()


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


def meet(job: Meeting, timeout: float, warn_after: float = _WARN_AFTER) -> Control:
    """Wait up to *timeout* seconds until all ranks of *job* are there, and return this rank's control connections.

    After *warn_after* seconds, if that is not 0, one warning on standard error tells what is waited for.
    Raises StateError where the ranks' places, secrets, sizes or versions do not fit together, CollectiveTimeoutError where some
    do not come or rank 0 cannot be found, and PeerLostError where rank 0 is gone before all are there.
    """
    if not 0 <= job.rank < job.size:
        raise ArgumentError(f"the rank must be in 0..{job.size - 1}, got {job.rank}")
    deadline = time.monotonic() + timeout
    warning = _Warning(job, warn_after)
    control = (
        _at_home(job, deadline, timeout, warning) if job.rank == 0 else _on_the_way(job, deadline, timeout, warning)
    )
    _open_controls.add(control)
    return control


class _Warning:
    """One warning on standard error, when the meeting lasts."""

    def __init__(self, job: Meeting, after: float) -> None:
        self._job = job
        self._after = after
        self._due = time.monotonic() + after if after > 0 else float("inf")

    def give_if_due(self, text: Callable[[], str]) -> None:
        if time.monotonic() >= self._due:
            self._due = float("inf")
            if sys.stderr is not None:
                job = self._job
                sys.stderr.write(f"shim: rank {job.rank} of {job.size} has waited {self._after:g} s: {text()}\n")
                sys.stderr.flush()


# Rank 0.


def _at_home(job: Meeting, deadline: float, timeout: float, warning: _Warning) -> Control:
    _check_files(job.size)
    listener, where = (None, "") if job.size == 1 else _listening(job, deadline, timeout, warning)
    control = Control(0, job.size)
    address = "127.0.0.1" if listener is None or listener.family == socket.AF_UNIX else str(listener.getsockname()[0])
    me = Peer(socket.gethostname(), host_id(), os.getpid(), address, job.facts)
    hub = Hub(Loop("shim control hub"), job.size, me, control.receive)
    control.attach(HubLink(hub))
    hub.loop.call(hub.open, listener, hash_of_key(job.key), job.secret)
    hub.loop.start()
    try:
        while not control.met.wait(min(deadline, time.monotonic() + 0.1)):
            warning.give_if_due(lambda: _those_missing(hub, where)[0])
            if not seconds_left(deadline):
                raise _too_few(hub, where, timeout)
    except BaseException as error:
        _call_off(hub, error)
        raise
    return control


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


def _listening(job: Meeting, deadline: float, timeout: float, warning: _Warning) -> tuple[socket.socket, str]:
    """Return a socket that listens at the first free place of the meeting, and how messages show the place."""
    pause = 0.01
    while True:
        taken: dict[str, str] = {}
        for place in _own_places(job, taken):
            try:
                return listen_at(place), place.shown
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:
                    raise _not_here(job, place) from None
                taken[place.shown] = _owner(place) if error.errno == errno.EADDRINUSE else f"failed ({error.strerror})"
        warning.give_if_due(lambda: f"it cannot listen: {shown_outcomes(taken)}")  # noqa: B023 - called at once
        if not seconds_left(deadline):
            raise CollectiveTimeoutError(
                f"rank 0 of {job.size} could not listen at {job.address or 'its unix socket'} within {timeout:g} s: {shown_outcomes(taken)}"
            )
        time.sleep(min(pause, seconds_left(deadline)))
        pause = min(2 * pause, 0.25)


def _own_places(job: Meeting, failures: dict[str, str]) -> Sequence[Place]:
    """Return the places where rank 0 may listen; none, and the reason in *failures*, where the name is unknown."""
    found = _checked_places(job, failures)
    if not job.interface or not job.address or not found:
        return found
    mine = addresses_of_interface(job.interface)
    fitting = [place for place in found if place.address[0] in mine]
    if not fitting:
        raise StateError(
            f"SHIM_INTERFACE={job.interface} has {', '.join(mine)}, and the ranks meet at {job.address}, which is "
            f"{_shown_hosts(found)} on host {socket.gethostname()}\nThe interfaces are {shown_interfaces()}."
        )
    return fitting


def _checked_places(job: Meeting, failures: dict[str, str]) -> Sequence[Place]:
    """Return where the hub may be. Raises StateError where that needs a secret, and there is none."""
    if not job.address:
        return [unix_place(job.key)]
    try:
        found = places(job.address)
    except (OSError, UnicodeError) as error:
        failures[job.address] = f"no host has that name ({getattr(error, 'strerror', None) or error})"
        return []
    failures.pop(job.address, None)
    safe = found if job.secret else [place for place in found if is_loopback(place)]
    if not safe:
        raise StateError(
            f"rank {job.rank} of {job.size}: the ranks meet at {job.address} ({_shown_hosts(found)}), which other hosts can reach, "
            "and have no secret\nSet SHIM_SECRET to the same value on all hosts."
        )
    return safe


def _shown_hosts(found: Sequence[Place]) -> str:
    return ", ".join(dict.fromkeys(str(place.address[0]) for place in found))


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
                pid, uid = peer_user(probe)
                return f"process {pid} (uid {uid}) meets there, as rank 0 of a job of the same name"
    return "taken"


def _those_missing(hub: Hub, where: str) -> tuple[str, list[int]]:
    """Return in words, and as numbers, who has not come, asked of the hub on its own thread."""
    found: list[tuple[list[int], list[str]]] = []
    hub.loop.call_and_wait(lambda: found.append((hub.missing(), hub.notes())), _FOR_AN_ANSWER)
    missing, notes = found[0] if found else ([], ["the hub's thread does not answer"])
    text = f"{shown_ranks(missing)} {'has' if len(missing) == 1 else 'have'} not come to rank 0, at {where} on host {socket.gethostname()}"
    return text + "".join(f"\n  {note}" for note in notes), missing


def _too_few(hub: Hub, where: str, timeout: float) -> CollectiveTimeoutError:
    text, missing = _those_missing(hub, where)
    error = CollectiveTimeoutError(f"the ranks did not meet within {timeout:g} s: {text}")
    error.ranks = tuple(missing)
    return error


def _call_off(hub: Hub, error: BaseException) -> None:
    """Tell those that came why there is no world, and end the hub."""
    kind = type(error).__name__ if isinstance(error, EngineError) else "PeerLostError"
    text = str(error) if isinstance(error, EngineError) else f"rank 0 left the meeting ({type(error).__name__})"
    ranks = list(error.ranks) if isinstance(error, CollectiveTimeoutError) else [0]
    hub.loop.call_and_wait(lambda: hub.fail(kind, ranks, text), _FOR_AN_ANSWER)
    HubLink(hub).flush()
    hub.loop.call(hub.close)
    hub.loop.join(_FOR_AN_ANSWER)


# The other ranks.


def _on_the_way(job: Meeting, deadline: float, timeout: float, warning: _Warning) -> Control:
    sock, keys = _joined(job, deadline, timeout, warning)
    control = Control(job.rank, job.size)
    loop = Loop(f"shim control {job.rank}")
    link = RankLink(loop, sock, keys, control.receive, control.lose_hub)
    control.attach(link)
    loop.start()
    try:
        link.send(Kind.ABOUT, packed_about(socket.gethostname(), host_id(), os.getpid(), job.facts))
        _await_roster(job, control, link, deadline, timeout)
    except BaseException as error:
        link.leave("its meeting ended with " + type(error).__name__)
        raise
    return control


def _await_roster(job: Meeting, control: Control, link: RankLink, deadline: float, timeout: float) -> None:
    me = f"(rank {job.rank} of {job.size})"
    if not control.met.wait(deadline):
        link.send(Kind.WITHDRAW, bytes(4))
        if not control.met.wait(time.monotonic() + _FOR_AN_ANSWER):
            raise CollectiveTimeoutError(
                f"the ranks did not meet within {timeout:g} s: rank 0 was there, but does not answer {me}"
            )
    kind, body = control.met.answer
    fields = Fields(body)
    if kind is Kind.ROSTER:
        return
    if kind is Kind.MISSING:
        missing, notes = fields.ranks(), fields.rest().decode(errors="replace")
        late = CollectiveTimeoutError(
            f"the ranks did not meet within {timeout:g} s: {shown_ranks(missing)} {'has' if len(missing) == 1 else 'have'} "
            f"not come to rank 0 {me}{notes and chr(10)}{notes}"
        )
        late.ranks = tuple(missing)
        raise late
    if kind is Kind.FAILED:
        raise _told_error(fields, me)
    lost = PeerLostError(f"rank 0's process ended or cannot be reached any more, before all ranks had come {me}")
    lost.ranks = (0,)
    raise lost


def _told_error(fields: Fields, me: str) -> Exception:
    """Return the error that the hub tells of."""
    name, ranks, text = fields.text(), tuple(fields.ranks()), fields.rest().decode(errors="replace")
    first, newline, rest = text.partition("\n")
    text = f"{first} {me}{newline}{rest}"
    if name == "StateError":
        return StateError(text)
    error = CollectiveTimeoutError(text) if name == "CollectiveTimeoutError" else PeerLostError(text)
    error.ranks = ranks
    return error


def _joined(job: Meeting, deadline: float, timeout: float, warning: _Warning) -> tuple[socket.socket, SessionKeys]:
    """Find the hub, and prove to each other that both are of this job."""
    knocking = Knocking(hash_of_key(job.key), {})

    def hubs_places() -> Sequence[Place]:
        found = _checked_places(job, knocking.outcomes)
        if job.interface and job.address and found:
            knocking.sources = address_of_interface(job.interface, found)
        return found

    while True:
        found = knocking.until(
            deadline, hubs_places, lambda: warning.give_if_due(lambda: f"it looks for rank 0{_searched(job, knocking)}")
        )
        if found is None:
            late = CollectiveTimeoutError(
                f"rank {job.rank} of {job.size} did not find rank 0 within {timeout:g} s{_searched(job, knocking)}"
            )
            late.ranks = (0,)
            raise late
        sock, hello = found
        try:
            keys = _shaken_hands(job, sock, hello, deadline)
        except OSError:
            sock.close()
            time.sleep(min(0.05, seconds_left(deadline)))
        except BaseException:
            sock.close()
            raise
        else:
            return sock, keys


def _searched(job: Meeting, knocking: Knocking) -> str:
    source = ", ".join(knocking.sources.values())
    by = f" from {source} (SHIM_INTERFACE={job.interface})" if source else ""
    return f" at {job.address or 'its unix socket'}{by}, from host {socket.gethostname()}\n  {shown_outcomes(knocking.outcomes)}"


def _shaken_hands(job: Meeting, sock: socket.socket, hello: Hello, deadline: float) -> SessionKeys:
    """Join as this rank. Raises StateError where the hub refuses or has another secret, OSError where it goes away."""
    me = f"rank {job.rank} of {job.size}"
    if hello.protocol != PROTOCOL:
        raise StateError(other_version(PROTOCOL, me, hello.protocol, "rank 0"))
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    join = Join.new(job.rank, job.size, job.secret)
    keys = SessionKeys(job.secret, hello, join)
    sock.settimeout(min(5.0, max(0.1, seconds_left(deadline))))
    sock.sendall(join.packed() + keys.proof_of_member)
    reply = Reply.unpacked(_received(sock, REPLY_SIZE))
    text = _received(sock, reply.length_of_text).decode(errors="replace")
    if reply.status == Status.WRONG_SECRET or reply.proof != keys.proof_of_hub:
        raise StateError(_other_secret(job, hello, f"rank 0 at {_shown_peer(sock)}"))
    if reply.status != Status.WELCOME:
        raise StateError(f"{text.partition(chr(10))[0]} ({me})\n{text.partition(chr(10))[2]}".rstrip())
    return keys


def _other_secret(job: Meeting, hello: Hello, hub: str) -> str:
    me = f"rank {job.rank} of {job.size}"
    if job.secret and hello.has_secret:
        text = f"{me} and {hub} have different secrets"
    else:
        has, has_not = (hub, me) if hello.has_secret else (me, hub)
        text = f"{has} has a secret, and {has_not} has none"
    return f"{text}\nSet SHIM_SECRET to the same value on all hosts."


def _shown_peer(sock: socket.socket) -> str:
    if sock.family == socket.AF_UNIX:
        return "a unix socket of this host"
    ip, port = sock.getpeername()[:2]
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _received(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise ConnectionResetError("rank 0 closed the connection")
        data += more
    return data


def _close_all() -> None:
    """Say good-bye when the program ends without having closed its connections, and let the hub send what it has."""
    for control in list(_open_controls):
        control.close("its program ended")
        control.flush()


atexit.register(_close_all)
