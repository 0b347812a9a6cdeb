"""What the ranks of a recording have passed to each other, for those of the next pass of a rehearsal: sizes, pickles and other small integers,
and single numbers.

A pass is right when every rank has got what the others have passed in it. Other numbers than integers matter if a program reads some.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Set
from pathlib import Path
from typing import Any

from shim._native import dtype_bytes
from shim.core.engines.rehearsal.known_values import GroupKey, Key, Sent, know
from shim.errors import ArgumentError
from shim.trace.calls import Call, Group, RankRecording
from shim.trace.reading import read_recording


class Values:
    """What was passed, by call and group rank, whose bytes are in *folder*, and what was stored, by store and key.

    The ranks of a pass are added as they end, so that those that begin later know of them.
    """

    def __init__(self, folder: Path, ran: Collection[int]) -> None:
        self.folder, self._ran = folder, frozenset(ran)
        self._called: dict[int, int] = {}  # what stands for the calls of each rank
        self._unknown: frozenset[object] = frozenset()  # what ranks had not got at the end of the last pass
        self._sent: dict[Key, dict[int, Sent]] = {}
        self._stored: dict[tuple[str, bytes], bytes] = {}
        self._stored_by: dict[tuple[str, bytes], dict[int, bytes]] = defaultdict(dict)
        self._given: frozenset[Key] = frozenset()  # of a real job
        self._of_ranks: dict[int, dict[Key, Sent]] = {}
        self.begin_pass()

    def begin_pass(self) -> None:
        """Have what the ranks pass from now on be compared with what is known."""
        self._got: dict[Key, dict[int, int | None]] = defaultdict(dict)  # digests of what ranks have received
        self._changed: dict[Key, set[int]] = defaultdict(set)  # who has passed something else than was known
        self._began: dict[int, int] = {}  # how many ranks had ended when a rank began
        self._ended: dict[int, int] = {}  # which of them it was
        self._stored_anew: set[tuple[str, bytes]] = set()
        self._has_made_up = self._calls_otherwise = False
        self.ranks: dict[int, RankRecording] = {}

    def take_job(self, path: Path, size: int) -> None:
        """Take those of a real job of *size* ranks, recorded in *path* with its values in ``path/values``. Raises ArgumentError."""
        recording = read_recording(path)
        if recording.size != size:
            raise ArgumentError(f"{path} is the recording of a job of {recording.size} ranks, and {size} are rehearsed")
        if not (path / "values").is_dir():
            raise ArgumentError(
                f"{path} has no folder values\nRecord the job with SHIM_TRACE_DIGESTS=1 SHIM_TRACE_VALUES={path}/values."
            )
        shutil.copytree(path / "values", self.folder, dirs_exist_ok=True)
        for one in recording.ranks.values():
            self.add(one)
        self._of_ranks.clear()
        self._called.clear()
        self._given = frozenset(self._sent)

    def begin(self, rank: int) -> None:
        """Have the process of *rank*, a copy of this one that begins now, answer with all that is known."""
        self._began[rank] = len(self._ended)
        know(str(self.folder), self._sent, self._stored, self._ran)

    def add(self, one: RankRecording) -> None:
        """Take what a rank has passed that has ended."""
        mine: dict[Key, Sent] = {}
        for key, place, call in _calls_of(one):
            if call.shape.collective != "send":
                self._got[key][place] = call.output_digest
            if call.input_digest is None or call.shape.collective == "receive" or key in self._given:
                continue
            width, dtype = dtype_bytes(call.shape.dtype), call.shape.dtype
            sizes = tuple(count * width for count in call.shape.parts("inputs"))
            mine[key] = Sent(call.input_digest, sizes, "int" in dtype or dtype == "bool")
            if self._sent.setdefault(key, {}).get(place) != mine[key]:
                self._sent[key][place] = mine[key]
                self._changed[key].add(place)
        for key in self._of_ranks.get(one.rank, {}).keys() - mine.keys():  # which it does not call any more
            place = _place(key, one.rank)
            self._sent[key].pop(place, None)
            self._changed[key].add(place)
        self._of_ranks[one.rank] = mine
        self.ranks[one.rank] = one
        called = hash(tuple((call.shape.collective, call.shape.source, call.shape.bytes) for call in one.calls))
        self._calls_otherwise |= self._called.get(one.rank) != called
        self._called[one.rank] = called
        for name, value in one.stored.items():
            by_rank = self._stored_by[name]
            before = by_rank[min(by_rank)] if by_rank else None
            by_rank[one.rank] = value
            self._stored[name] = by_rank[min(by_rank)]  # of several ranks, the lowest is taken to store last
            if self._stored[name] != before:
                self._stored_anew.add(name)
        self._has_made_up |= bool(one.made_up)
        self._ended[one.rank] = len(self._ended)

    def is_settled(self) -> bool:
        """Tell whether every rank of the pass has got what the others have passed in it.

        What differs in every pass, as times do, is no reason to go on: two passes with the same calls, which lack the same, are enough.
        """
        unknown = {key for key, places in self._changed.items() if not self._was_known(key, places)}
        before, self._unknown = self._unknown, frozenset(unknown | self._stored_anew)
        return not self._unknown or (not self._calls_otherwise and self._unknown == before)

    def _was_known(self, key: Key, changed: Set[int]) -> bool:
        """Tell whether all who received had what those at the *changed* places have passed, or have made up the same."""
        sent, got = self._sent[key], self._got[key]
        if not self._has_made_up and sent and not any(one.are_integers for one in sent.values()):
            return True  # no program asks for it
        digests = {one.digest for one in sent.values()}
        for place, digest in got.items():
            senders = changed - {place}
            if all(self._ended[_rank(key, one)] < self._began.get(_rank(key, place), 0) for one in senders):
                continue
            if senders - sent.keys() or len(digests) > 1 or (place not in sent and digest not in digests):
                return False
        return True


def _rank(key: Key, place: int) -> int:
    (_, ranks, _), *_ = key
    return int(ranks[place])


def _place(key: Key, rank: int) -> int:
    (_, ranks, _), *_ = key
    return int(ranks.index(rank))


def _calls_of(one: RankRecording) -> Iterator[tuple[Key, int, Call]]:
    """Tell all calls of data that were carried out, each with its key as the engine counts them and the caller's group rank.

    What a real job calls by itself, to make groups, a rehearsal does not.
    """
    made: Counter[tuple[str, tuple[int, ...]]] = Counter()
    groups: dict[Group, tuple[GroupKey, dict[int, int]]] = {}
    for _, group in one.groups:
        made[group.name, group.ranks] += 1
        places = {rank: place for place, rank in enumerate(group.ranks)}
        groups[group] = (group.name, group.ranks, made[group.name, group.ranks]), places
    numbers: Counter[Any] = Counter()
    for call in one.calls:
        shape = call.shape
        is_of_job = shape.collective == "barrier" or (shape.is_internal and not shape.is_of_sizes)
        if call.is_refused or is_of_job or len(shape.group.ranks) == 1:
            continue
        name, places = groups[shape.group]
        if not shape.is_message:
            key: Key = (name, numbers[name])
            numbers[name] += 1
        else:
            peer = call.source_rank if shape.peer is None else shape.peer
            ends = (places[one.rank], places.get(peer, -1) if peer is not None else -1)
            message = (name, *(ends if shape.collective == "send" else ends[::-1]), shape.tag)
            key = (*message, numbers[shape.collective, message])
            numbers[shape.collective, message] += 1
        yield key, places[one.rank], call
