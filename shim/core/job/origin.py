"""Which process started a rank: how ranks prove to which job they belong where another job may use the same port.

A process that multiprocessing or ``fork`` has started belongs to the job of its parent and of its siblings. One that a
program started by itself belongs to its siblings where these have been told of the same job. Any other has no proof.
What rank 0 has itself started shows that only when it comes to the meeting: it may as well load data.

Helpers that the ranks of a job have started have different parents. They belong together by that outer job.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

_SERVANT = re.compile(rb"multiprocessing\.(resource_tracker|forkserver) ")  # what multiprocessing starts for itself
_FORKED_AND_NO_EXEC = 0x40  # PF_FORKNOEXEC of linux/sched.h, in the ninth field of proc(5)'s stat


@dataclass(frozen=True)
class Origin:
    """What ``Origin`` in native/meeting/rendezvous.hpp says of this process; all empty where the job's name is no other job's."""

    process: str = ""
    parent: str = ""
    is_proven: bool = False
    may_have_started_others: bool = False
    outer_job: str = ""

    @property
    def shown(self) -> str:
        """The process and its parent, as ``description_of`` in native/meeting shows them."""
        number, parent = self.process.partition(".")[0], self.parent.partition(".")[0]
        return f"process {number}" + (f", which process {parent} started" if parent else "")

    def is_of_another_job(self, other: Origin) -> bool:
        """Tell whether the two processes have to be taken for ranks of two jobs."""
        from shim._native import are_of_two_jobs  # here, so that nobody who only asks where ranks are needs it

        return are_of_two_jobs(self.as_tuple(), other.as_tuple())

    def as_tuple(self) -> tuple[str, str, bool, bool, str]:
        return astuple(self)


NO_ORIGIN = Origin()


_RankIn = Callable[[Mapping[str, str]], "int | None"]
"""Returns the rank that an environment gives in this process's job, None where it gives none."""


def origin_of_this_process(rank: int, size: int, rank_in: _RankIn, outer_job: str = "") -> Origin:
    """Return the proof that rank *rank* of *size* has of its job, which the environments of its siblings may give.

    Below an *outer_job*, one that has too few siblings is taken for a helper, whose world has ranks of other parents.
    """
    parent = _multiprocessing_parent() or (os.getppid() if _is_copy("self", os.getppid()) else None)
    is_proven = parent is not None and (not outer_job or len(_workers_of(parent)) >= size)
    if parent is None and os.getppid() > 1:
        parent = os.getppid()
        siblings = _ranks_among(_children_of(parent), rank_in)
        is_proven = set(range(size)) <= siblings if rank == 0 else 0 in siblings
    shown = "" if parent is None else _name_of(parent)
    may_have_started_others = rank == 0 and not is_proven and _may_have_started_others(size, rank_in)
    return Origin(_name_of(os.getpid()), shown, is_proven, may_have_started_others, outer_job)


def lineage() -> list[int]:
    """Return this process, the one that started it, and so on."""
    found = [os.getpid()]
    process = _multiprocessing_parent() or os.getppid()  # a fork server has started it for its parent
    while process > 1:
        found.append(process)
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break  # it has ended
        process = int(stat.rpartition(")")[2].split()[1])
    return found


def _workers_of(parent: int) -> set[int]:
    """Return what *parent* has started, itself or by a fork server, but for what multiprocessing starts for itself."""
    started = _children_of(parent) | _children_of(os.getppid())
    return {child for child in started if not _SERVANT.search(_command_or_nothing(child))}


def _name_of(process: int) -> str:
    """Return the process's number with that of the namespace in which it has it."""
    try:
        return f"{process}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return f"{process}.0"


def _multiprocessing_parent() -> int | None:
    module = sys.modules.get("multiprocessing.process")
    parent = module.parent_process() if module else None
    return parent.pid if parent else None


def _is_copy(process: int | str, parent: int) -> bool:
    """Tell whether *process* is a copy of its *parent* and still runs the same program."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        flags = int(stat.rpartition(")")[2].split()[6])
        return bool(flags & _FORKED_AND_NO_EXEC) and _command_of(process) == _command_of(parent)
    except OSError:
        return False


def _command_of(process: int | str) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def _command_or_nothing(process: int) -> bytes:
    try:
        return _command_of(process)
    except OSError:
        return b""


def _may_have_started_others(size: int, rank_in: _RankIn) -> bool:
    """Tell whether this process has started as many processes as there are other ranks of *size*, or programs told to be these."""
    module = sys.modules.get("multiprocessing.process")
    by_multiprocessing = {child.pid for child in module.active_children()} if module else set()
    children = _children_of(os.getpid())
    copies = {child for child in children if _is_copy(child, os.getpid())}
    others = set(range(1, size))
    return len(by_multiprocessing | copies) >= len(others) or others <= _ranks_among(children, rank_in)


def _ranks_among(processes: Collection[int], rank_in: _RankIn) -> set[int]:
    """Return which ranks of this process's job *processes* were told to be when they were started."""
    ranks = set()
    for process in processes:
        try:
            text = Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            continue  # it has ended, or is another user's
        pairs = (os.fsdecode(entry).partition("=") for entry in text.split(b"\0"))
        rank = rank_in({name: value for name, _, value in pairs})
        if rank is not None:
            ranks.add(rank)
    return ranks


def _children_of(process: int) -> set[int]:
    children: set[int] = set()
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            children.update(int(child) for child in (task / "children").read_text().split())
    except OSError:
        pass  # the process or a thread of it has ended, or the kernel does not tell
    return children
