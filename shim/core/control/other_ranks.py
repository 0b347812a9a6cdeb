"""The part of the other ranks in a meeting: to find rank 0's hub, prove that both are of this job, and wait for the roster."""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import replace

from shim.core.control.addresses import Place, address_of_interface, host_id
from shim.core.control.authentication import PROTOCOL, REPLY_SIZE, Hello, Join, Reply, SessionKeys, Status, hash_of_key
from shim.core.control.control import Control
from shim.core.control.frames import Kind, packed_about
from shim.core.control.handshakes import other_version
from shim.core.control.hub_search import HubSearch, shown_outcomes
from shim.core.control.links import RankLink
from shim.core.control.meeting import Meeting, Patience, hub_places, told_error, too_late
from shim.core.control.peers import shown_ranks
from shim.core.sockets.frames import Fields, Sealing, receive
from shim.core.sockets.loop import Loop
from shim.errors import PeerLostError, ShimError, StateError

_FOR_AN_ANSWER = 2.0  # seconds that the hub has to say who has not come
_TO_SAY_WHY_NOT = 5.0  # seconds


def meet_as_other_rank(job: Meeting, patience: Patience) -> Control:
    """Join the hub of *job* and wait for the other ranks. Raises StateError, CollectiveTimeoutError and PeerLostError."""
    _check_interface(job, patience)
    loop = Loop(f"shim control {job.rank}")
    loop.start()
    try:
        control, link = enter(job, patience, loop)
    except BaseException:
        loop.stop()
        raise
    try:
        _await_roster(job, control, link, patience)
    except BaseException as error:
        link.leave(f"its meeting ended with {type(error).__name__}")
        raise
    return control


def enter(job: Meeting, patience: Patience, loop: Loop) -> tuple[Control, RankLink]:
    """Say to the hub who this rank is, over a connection that *loop* serves; the roster may come later. Ranks may share a loop."""
    sock, keys = _joined(job, patience)
    control = Control(job.rank, job.size)
    link = RankLink(loop, sock, keys, control.receive, control.lose_hub, job.gap)
    control.attach(link)
    link.send(Kind.ABOUT, packed_about(socket.gethostname(), host_id(), os.getpid(), job.facts))
    return control, link


def _check_interface(job: Meeting, patience: Patience) -> None:
    """Raise StateError for an interface that cannot be used, when rank 0 knows it too."""
    if not job.interface or not job.address:
        return
    try:
        found = hub_places(job, {}, patience)
        if found:  # else the name may become known later
            address_of_interface(job.interface, found)
    except StateError as error:
        _say_why_not(replace(job, interface=""), error)
        raise


def _say_why_not(job: Meeting, error: StateError) -> None:
    """Tell rank 0, if it is there within seconds, that this rank cannot come, so that nobody waits for it."""
    with contextlib.suppress(ShimError, OSError):
        sock, keys = _joined(job, Patience(job, _TO_SAY_WHY_NOT, 0))
        with sock:
            sock.sendall(b"".join(Sealing(keys.to_hub).seal(Kind.CANNOT, [str(error).encode(errors="replace")])))
            sock.recv(1)  # until rank 0 has read it


def _await_roster(job: Meeting, control: Control, link: RankLink, patience: Patience) -> None:
    me = f"(rank {job.rank} of {job.size})"
    within = f"the ranks did not meet within {patience.timeout:g} s"
    if not control.met.wait(patience.deadline):
        link.send(Kind.WITHDRAW, bytes(4))
        if not control.met.wait(time.monotonic() + _FOR_AN_ANSWER):
            raise too_late(f"{within}: rank 0 was there, but does not answer {me}", [0])
    kind, body = control.met.answer
    fields = Fields(body)
    if kind is Kind.ROSTER:
        return
    if kind is Kind.MISSING:
        missing, notes = fields.ranks(), fields.rest().decode(errors="replace")
        verb = "has" if len(missing) == 1 else "have"
        raise too_late(f"{within}: {shown_ranks(missing)} {verb} not come to rank 0 {me}\n  {notes}".rstrip(), missing)
    if kind is Kind.FAILED:
        raise told_error(fields, me)
    lost = PeerLostError(f"rank 0's process ended, or cannot be reached any more, before all ranks had come {me}")
    lost.ranks = (0,)
    raise lost


def _joined(job: Meeting, patience: Patience) -> tuple[socket.socket, SessionKeys]:
    """Find the hub, and prove to each other that both are of this job."""
    search = HubSearch(hash_of_key(job.key), {})

    def places() -> Sequence[Place]:
        found = hub_places(job, search.outcomes, patience)
        if job.interface and job.address and found:
            search.sources = address_of_interface(job.interface, found)
        return found

    def warn() -> None:
        patience.warn_if_due(lambda: f"it looks for rank 0{_searched(job, search)}")

    while (found := search.until(patience.deadline, places, warn)) is not None:
        sock, hello = found
        try:
            return sock, shaken_hands(job, sock, hello, patience, f"rank 0 at {_shown_peer(sock)}")
        except OSError:  # the hub has gone, or all ranks are there without this one
            sock.close()
            time.sleep(min(0.05, patience.left()))
        except BaseException:
            sock.close()
            raise
    me = f"rank {job.rank} of {job.size}"
    raise too_late(f"{me} did not find rank 0 within {patience.timeout:g} s{_searched(job, search)}", [0])


def _searched(job: Meeting, search: HubSearch) -> str:
    source = ", ".join(search.sources.values())
    by = f" from {source} (SHIM_INTERFACE={job.interface})" if source else ""
    outcomes = shown_outcomes(search.outcomes)
    return f" at {job.address or 'its unix socket'}{by}, from host {socket.gethostname()}\n  {outcomes}"


def shaken_hands(job: Meeting, sock: socket.socket, hello: Hello, patience: Patience, other: str) -> SessionKeys:
    """Join as this rank at *other*, which has said *hello*. Raises StateError where that refuses or has another secret, OSError where it goes away."""
    me = f"rank {job.rank} of {job.size}"
    if hello.protocol != PROTOCOL:
        raise StateError(other_version(PROTOCOL, me, hello.protocol, other.partition(" at ")[0]))
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    join = Join.new(job.rank, job.size, job.secret)
    keys = SessionKeys(job.secret, hello, join)
    sock.settimeout(min(5.0, max(0.1, patience.left())))
    sock.sendall(join.packed() + keys.proof_of_member)
    reply = Reply.unpacked(receive(sock, REPLY_SIZE))
    text = receive(sock, reply.length_of_text).decode(errors="replace")
    if reply.status == Status.WRONG_SECRET or not hmac.compare_digest(reply.proof, keys.proof_of_hub):
        raise StateError(_other_secret(job, hello, other))
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
