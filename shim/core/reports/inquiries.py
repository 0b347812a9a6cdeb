"""What the processes of this user on this host tell of their groups, when they are asked.

A process with a group answers on an abstract unix socket whose name has its number; the engine does that, in a thread of its own,
so that the program need not come to it (``native/reports/inquiries.hpp``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shim._native import ask_process, process_state, protocol_version

_SOCKETS = Path("/proc/net/unix")


@dataclass(frozen=True)
class LostRank:
    """A rank that is gone from a group, as one that is left knows it."""

    rank: int
    how: str  # "rank 2's process (pid 7) was killed by SIGKILL 12 ms ago"
    calls: str  # its last ones, newest first


@dataclass(frozen=True)
class WaitFacts:
    """A wait that has taken a tenth of a second."""

    since: int  # nanoseconds of the host's steady clock
    operation: int  # the collective it is in; 0 where it is for a message, or for others to make a group
    where: str  # "in group 'world'", "to make group 'pairs' of ranks 0, 1"
    awaited: tuple[int, ...]  # ranks of the group without which it cannot end
    held: int  # what cannot go on before, for sure: 0 nothing, 1 a thread of the program, 2 the whole program


@dataclass(frozen=True)
class GroupFacts:
    """What a process tells of a group it is in."""

    inode: int  # of its memory: the same on all its ranks, and of no other group on the host
    name: str
    engine: str  # "plain, as SHIM_ENGINE says"
    rank: int
    ranks: tuple[int, ...]  # of the world
    timeout: float  # seconds
    operation: int  # the last one it arrived at
    waits: str  # "has waited 12.0 s: operation 42, barrier(), at train.py:12 in step", or nothing
    waiting: WaitFacts | None
    calls: str  # its last ones, newest first
    gone: tuple[LostRank, ...]


@dataclass(frozen=True)
class ProcessFacts:
    """A process that has groups. One that does not answer has none here."""

    pid: int
    command: str
    state: str  # running, sleeping, stopped, or nothing
    answers: bool  # as this version understands it
    place: str | None  # where its program is, empty where that is in no line; None where it could not say so in time
    groups: tuple[GroupFacts, ...]  # as they were made
    host: str = ""  # its name, where several hosts were asked

    @property
    def key(self) -> tuple[str, int]:
        """What no other process has."""
        return self.host, self.pid

    @property
    def widest(self) -> GroupFacts:
        """The group with the most ranks, as a rule the world; there must be one."""
        return max(self.groups, key=lambda group: len(group.ranks))


def ask_all(timeout: float = 1.0, among: Collection[int] | None = None) -> list[ProcessFacts]:
    """Ask all processes of this user at once, or those *among* these numbers, waiting up to *timeout* seconds for each."""
    addresses = sorted(one for one in _addresses(os.geteuid()) if among is None or _number_in(one) in among)
    with ThreadPoolExecutor(max_workers=16) as asking:
        return list(asking.map(lambda address: _ask(address, timeout), addresses))


def _addresses(user: int) -> Iterator[str]:
    pattern = re.compile(rf"@(shim-{user}-process-\d+-[0-9a-f]{{16}})$")
    yield from {
        match[1] for line in _SOCKETS.read_text(errors="replace").splitlines() if (match := pattern.search(line))
    }


def _number_in(address: str) -> int:
    return int(address.split("-")[3])


def _ask(address: str, timeout: float) -> ProcessFacts:
    pid = _number_in(address)
    said, place = ask_process(address, timeout)
    groups = groups_in(said.decode(errors="replace"))
    return ProcessFacts(
        pid=pid,
        command=_command(pid),
        state=process_state(pid),
        answers=groups is not None,
        place=None if place is None else place.decode(errors="replace"),
        groups=groups or (),
    )


def groups_in(said: str) -> tuple[GroupFacts, ...] | None:
    """Return the groups in the facts that a process has *said*; None where it did not answer, or has another version of these facts."""
    facts: dict[str, Any] = json.loads(said) if said else {}
    if facts.get("protocol") != protocol_version:
        return None
    return tuple(_group(group) for group in facts["groups"])


def _group(facts: dict[str, Any]) -> GroupFacts:
    return GroupFacts(
        inode=facts["inode"],
        name=facts["name"],
        engine=facts["engine"],
        rank=facts["rank"],
        ranks=tuple(facts["ranks"]),
        timeout=facts["timeout_ms"] / 1e3,
        operation=facts["operation"],
        waits=facts["waits"],
        waiting=_wait(facts["waiting"]),
        calls=facts["calls"],
        gone=tuple(LostRank(**lost) for lost in facts["gone"]),
    )


def _wait(facts: dict[str, Any] | None) -> WaitFacts | None:
    return None if facts is None else WaitFacts(**facts | {"awaited": tuple(facts["awaited"])})


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words if word)
