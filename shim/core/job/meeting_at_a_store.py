"""How ranks that have a store find each other in it, and where they all are: rank 0 hears of each, and answers."""

from __future__ import annotations

import json
import secrets
import socket
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any, Protocol

from shim.core.job.hosts import boot_id, free_address
from shim.core.job.job import Job
from shim.core.job.origin import Origin
from shim.errors import StateError

# Seconds with another job's rank that waits in vain, too; a quarter of the store's timeout if that is shorter.
_PATIENCE = 30.0
_PAUSE = 0.05  # seconds between two looks, once another job's rank has come
_USUAL_TIMEOUT = 300.0
_HINT = "Where the two are of one job, set SHIM_JOB_NAME to the same name on all ranks."
# An answer has one of these, or what Told has.
_REFUSED, _FOUND = "refused", "found rank 0 of another job"


class Meeting(Protocol):
    """A store, of ours or of anyone else's: ``get`` waits for a key. With ``add``, ``check`` and ``compare_set`` it serves several jobs."""

    def set(self, key: str, value: str, /) -> object: ...
    def get(self, key: str, /) -> bytes | str: ...


@dataclass(frozen=True)
class Told:
    """What rank 0 tells the others through a store: a name for the job, where ranks of several hosts meet, and what shows that they are on several."""

    name: str
    address: str = ""
    several_hosts: str = ""


@dataclass(frozen=True)
class _Guest:
    """A rank as it describes itself: its job's *name* where the user gave one, and the key under which it waits for an *answer*."""

    host: str
    answer: str
    name: str
    origin: tuple[str, str, bool, bool, str]

    def is_of_another_job(self, host: str, name: str, origin: Origin) -> bool:
        """Tell whether it is not of the job of rank 0 on *host*. Processes of two hosts have other parents, which proves nothing."""
        if self.name or name:
            return self.name != name
        return self.host == host and origin.is_of_another_job(Origin(*self.origin))


def meet_at(store: Meeting, me: Job, name: str, origin: Origin) -> Told:
    """Meet the other ranks of *me*'s job, which may have a *name* of its own, and return what rank 0 tells."""
    return _gather(store, me, name, origin) if me.rank == 0 else _come(store, me, name, origin)


def _gather(store: Meeting, me: Job, name: str, origin: Origin) -> Told:
    """Hear from all other ranks where they are, as rank 0, and return what it has told them."""
    said: list[_Guest] = []
    answer: dict[str, str] = {}
    try:
        for other in range(1, me.size):
            said.append(_heard(store, me, other, name, origin))
        told = _told_of(store, me, [guest.host for guest in said])
        answer = asdict(told)
    except StateError as error:
        answer = {_REFUSED: f"rank 0: {error}"}
        raise
    finally:
        for guest in said if answer else ():
            store.set(guest.answer, json.dumps(answer))
    return told


def _told_of(store: object, me: Job, hosts: list[str]) -> Told:
    """Return what to tell the other ranks, who are on these *hosts*. Raises StateError for an interface without an address."""
    here, told = _this_host(), Told(secrets.token_hex(16))
    away = next(((rank, host) for rank, host in enumerate(hosts, 1) if host != here), None)
    if away is None:
        return told
    address = free_address((_host_of(store), away[1].partition(" ")[0]), me.interface)
    return replace(told, address=address, several_hosts=f"rank 0 is on {here}, and rank {away[0]} on {away[1]}")


def _host_of(store: object) -> str:
    """Return the host that serves *store*, or the one of which it is a part; nothing where it has none, as a file."""
    while store is not None:
        host = getattr(store, "host", None)
        if isinstance(host, str):
            return host
        store = getattr(store, "underlying", None) or getattr(store, "underlying_store", None)  # ours, and torch's
    return ""


def _heard(store: Any, me: Job, rank: int, name: str, origin: Origin) -> _Guest:
    """Return the next *rank* that came and is of no other job. Tell those of other jobs that they are taken for that."""
    strangers: list[_Guest] = []
    for turn in count(1):
        place = f"shim/rank {rank} of {turn}"
        guest = _Guest(**json.loads(_said_beside(strangers, store, place, origin)))
        is_of_another_job = guest.is_of_another_job(_this_host(), name, origin)
        if not is_of_another_job and _next_turn(store, f"{place}, taken") == 1:
            return guest
        if is_of_another_job and not _serves_several(store):
            store.set(guest.answer, json.dumps({_REFUSED: _in_vain(origin, guest)}))
            raise StateError(_in_vain(origin, guest))
        if is_of_another_job:
            if not strangers:
                _warn(me, origin, f"found rank {rank} of another job: {Origin(*guest.origin).shown}")
            strangers.append(guest)
            store.compare_set(guest.answer, "", _note_of(origin))
    raise AssertionError("turns do not end")


def _said_beside(strangers: list[_Guest], store: Any, place: str, origin: Origin) -> str:
    """Return what the rank of *place* says. Raises StateError where it does not come and one of the *strangers* waits in vain too."""
    until = time.monotonic() + min(_PATIENCE, _timeout_of(store) / 4)
    while strangers and not store.check([place]):
        if time.monotonic() > until:
            for guest in strangers:
                refusal = json.dumps({_REFUSED: _in_vain(origin, guest)})
                if _text(store.compare_set(guest.answer, _note_of(origin), refusal)) == refusal:
                    raise StateError(_in_vain(origin, guest))
            break  # all of them have found their own
        time.sleep(_PAUSE)
    return _text(store.get(place))


def _come(store: Any, me: Job, name: str, origin: Origin) -> Told:
    """Say where this rank is, and return what rank 0 tells when it has heard all."""
    turn = _next_turn(store, f"shim/rank {me.rank}")
    guest = _Guest(_this_host(), f"shim/job {turn} for rank {me.rank}", name, origin.as_tuple())
    store.set(f"shim/rank {me.rank} of {turn}", json.dumps(asdict(guest)))
    until, is_warned = time.monotonic() + _timeout_of(store), False
    while True:
        told = json.loads(_text(store.get(guest.answer)))
        if _REFUSED in told:
            raise StateError(told[_REFUSED])
        if _FOUND not in told:
            return Told(**told)
        if not is_warned:
            _warn(me, origin, f"{_FOUND}: {told[_FOUND]}")
        if time.monotonic() > until:
            raise StateError(
                f"{_FOUND} at this store, {told[_FOUND]}, and no other within {_timeout_of(store):g} s\n{_HINT}"
            )
        is_warned = True
        time.sleep(_PAUSE)


def _note_of(origin: Origin) -> str:
    """Return what the rank 0 with *origin* leaves for a rank of another job, until that one's own answers in its place."""
    return json.dumps({_FOUND: origin.shown})


def _in_vain(origin: Origin, guest: _Guest) -> str:
    theirs = Origin(*guest.origin).shown
    return (
        f"the ranks cannot meet at this store: {origin.shown}, is rank 0 of one job, {theirs}, is a rank of another one, "
        f"and each waits in vain for its own\n{_HINT} Otherwise give each job a store or a prefix of its own."
    )


def _warn(me: Job, origin: Origin, text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(
            f"shim: rank {me.rank} of {me.size}, {origin.shown}, {text}\nIt goes on waiting for its own. {_HINT}\n"
        )
        sys.stderr.flush()


def _serves_several(store: object) -> bool:
    return all(hasattr(store, name) for name in ("add", "check", "compare_set"))


def _next_turn(store: Any, key: str) -> int:
    return int(store.add(key, 1)) if hasattr(store, "add") else 1


def _timeout_of(store: object) -> float:
    timeout = getattr(store, "timeout", _USUAL_TIMEOUT)
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


def _this_host() -> str:
    """Return the host's name, and what tells it from others of that name."""
    return f"{socket.gethostname()} {boot_id()}".strip()
