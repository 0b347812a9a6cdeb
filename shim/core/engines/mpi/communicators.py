"""The communicators of this process's groups, which are used again: MPICH has 2,048 for a process."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shim.core.engines.mpi.library import Library
from shim.errors import EngineError

Exchange = Callable[[bytes], Sequence[bytes]]  # gives all members each one's bytes, in group order

_MOST_KEPT = 256
# The numbers of messages and collectives, up to 2**20 + 1, and those of the link itself.
_TAGS_OF_A_GROUP = (1 << 20) + 16

_kept: dict[tuple[int, ...], list[Communicator]] = {}
_lock = threading.Lock()


@dataclass(eq=False)
class Communicator:
    """A communicator of MPI, which serves one group after another.

    Each group has tags of its own from ``first_tag`` on, so that none takes messages which its predecessor left there.
    """

    handle: Any
    members: tuple[int, ...]
    name: str  # the same on all members, another one for each communicator
    last_tag: int  # of the library
    first_tag: int = 0
    used: set[int] = field(default_factory=set)  # first tags of groups

    @property
    def tags(self) -> int:
        """How many tags each group has."""
        return min(_TAGS_OF_A_GROUP, self.last_tag + 1)

    def first_tag_for(self, number: int) -> int:
        """Return the first tag of a group with *number*."""
        return number % ((self.last_tag + 1) // self.tags) * self.tags


def open_communicator(library: Library, members: tuple[int, ...], problem: str, exchange: Exchange) -> Communicator:
    """Return a communicator of *members*, ranks of the world; all of them call this.

    *problem* tells why this rank cannot take part: then EngineError is raised on every member.
    """
    offered = [] if problem else _take_all(members)
    found = None
    try:
        told = [json.loads(text) for text in exchange(_offer(library, offered, problem))]
        _check(members, told)
        found = _choose(library, members, offered, told)
        return found
    finally:
        for each in offered:
            if each is not found:
                keep(each)


def keep(communicator: Communicator) -> None:
    """Keep a communicator on which nothing is under way for another group, or free it where many are kept."""
    with _lock:
        _kept.setdefault(communicator.members, []).append(communicator)
        if sum(map(len, _kept.values())) <= _MOST_KEPT:
            return
        members = next(iter(_kept))
        oldest = _kept[members].pop(0)
        if not _kept[members]:
            del _kept[members]
    oldest.handle.Free()


def _take_all(members: tuple[int, ...]) -> list[Communicator]:
    """Take those that are kept for *members*, so that no other thread offers them to another group at the same time."""
    with _lock:
        return _kept.pop(members, [])


def _offer(library: Library, offered: Sequence[Communicator], problem: str) -> bytes:
    offer = {
        "problem": problem,
        "version": library.version(),
        "kept": [each.name for each in offered],
        "name": secrets.token_hex(8),
        "number": secrets.randbits(63),  # of the group, which is the first member's
    }
    return json.dumps(offer).encode()


def _check(members: Sequence[int], told: Sequence[dict[str, Any]]) -> None:
    problems = [f"rank {rank}: {each['problem']}" for rank, each in zip(members, told, strict=True) if each["problem"]]
    if problems:
        raise EngineError("\n".join(problems))
    versions = [each["version"] for each in told]
    if len(set(versions)) > 1:
        listed = ", ".join(f"rank {rank} has {version}" for rank, version in zip(members, versions, strict=True))
        raise EngineError(f"the mpi engine needs one MPI on all ranks: {listed}")


def _choose(
    library: Library,
    members: tuple[int, ...],
    offered: Sequence[Communicator],
    told: Sequence[dict[str, Any]],
) -> Communicator:
    """Return one that all members have kept and whose tags for the group's number are unused, or a new one."""
    number = told[0]["number"]
    common = set.intersection(*(set(each["kept"]) for each in told))
    fresh = {each.name: each for each in offered if each.first_tag_for(number) not in each.used}
    names = common & fresh.keys()  # the same on all members: a communicator has had the same groups on all
    chosen = fresh[min(names)] if names else _created(library, members, number, told[0]["name"])
    chosen.first_tag = chosen.first_tag_for(number)
    chosen.used.add(chosen.first_tag)
    return chosen


def _created(library: Library, members: Sequence[int], number: int, name: str) -> Communicator:
    mpi = library.mpi
    group = mpi.COMM_WORLD.Get_group()
    part = group.Incl(list(members))
    last_tag = mpi.COMM_WORLD.Get_attr(mpi.TAG_UB)
    try:
        handle = mpi.COMM_WORLD.Create_group(part, number % (last_tag + 1))  # threads' groups are told apart by tags
        handle.Set_errhandler(mpi.ERRORS_RETURN)
        names = bytearray(len(name) * len(members))
        handle.Allgather([name.encode(), mpi.BYTE], [names, mpi.BYTE])
    except mpi.Exception as error:
        raise EngineError(
            f"{library.version()} cannot make a communicator of {len(members)} ranks: {error}\n"
            "An MPI has a limited number of them: destroy groups that are no longer used."
        ) from error
    finally:
        part.Free()
        group.Free()
    if names != name.encode() * len(members):
        handle.Free()
        raise EngineError(
            "MPI took two groups for one, which threads made at the same time\nMake them again, one after the other."
        )
    return Communicator(handle, tuple(members), name, last_tag)
