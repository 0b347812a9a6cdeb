"""What the ranks of a recording have passed to each other, for those of the next pass of a rehearsal: small integers, such as sizes and pickles.

A pass is right when every rank has got what the others have passed in it.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shim._native import dtype_bytes
from shim.core.engines.known_values import GroupKey, Key, Sent, know
from shim.trace.calls import Call, Group, RankRecording, Recording
from shim.trace.reading import read_recording


@dataclass
class Values:
    """By call and group rank what was passed, whose bytes are in *folder*, and by store and key what was stored."""

    folder: Path
    sent: dict[Key, dict[int, Sent]] = field(default_factory=dict)
    stored: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    got: dict[Key, dict[int, int | None]] = field(default_factory=dict)  # digests of what ranks have received

    @classmethod
    def of(cls, recording: Recording, folder: Path) -> Values:
        values = cls(folder)
        for one in recording.ranks.values():
            values.stored |= one.stored
            for key, rank, call in _calls_of(one):
                values._add(key, rank, call)
        return values

    @classmethod
    def of_job(cls, path: Path, folder: Path) -> Values:
        """Return those of a real job, recorded in *path* with its values in ``path/values``, and put these into *folder*."""
        shutil.copytree(path / "values", folder, dirs_exist_ok=True)
        return cls.of(read_recording(path), folder)

    def _add(self, key: Key, rank: int, call: Call) -> None:
        if call.shape.collective != "send":
            self.got.setdefault(key, {})[rank] = call.output_digest
        if call.input_digest is not None and call.shape.collective != "receive":
            width = dtype_bytes(call.shape.dtype)
            sizes = tuple(count * width for count in call.shape.parts("inputs"))
            self.sent.setdefault(key, {})[rank] = Sent(call.input_digest, sizes)

    def use(self) -> None:
        """Have the rehearsed engine of this process and its copies answer with them."""
        know(str(self.folder), self.sent, self.stored)

    def over(self, others: Values) -> Values:
        """Return these, and those of *others* that are lacking. They are in one folder."""
        return Values(self.folder, {**others.sent, **self.sent}, {**others.stored, **self.stored})

    def are_those_of(self, others: Values) -> bool:
        return self.sent == others.sent and self.stored == others.stored

    def are_as_made_up(self) -> bool:
        """Tell whether the answers of a first pass, which knew nothing, were these."""
        return not self.stored and all(self._is_as_made_up(key, sent) for key, sent in self.sent.items())

    def _is_as_made_up(self, key: Key, sent: Mapping[int, Sent]) -> bool:
        digests = {one.digest for one in sent.values()}
        got = self.got.get(key, {})
        if len(sent) > 1:  # all members pass something; copies of one's own were right if that is the same
            return len(digests) == 1
        return all(digest in digests for rank, digest in got.items() if rank not in sent)


def _calls_of(one: RankRecording) -> Iterator[tuple[Key, int, Call]]:
    """Tell all calls that were carried out, each with its key as the engine counts them and the caller's group rank."""
    made: Counter[tuple[str, tuple[int, ...]]] = Counter()
    groups: dict[Group, tuple[GroupKey, dict[int, int]]] = {}
    for _, group in one.groups:
        made[group.name, group.ranks] += 1
        places = {rank: place for place, rank in enumerate(group.ranks)}
        groups[group] = (group.name, group.ranks, made[group.name, group.ranks]), places
    numbers: Counter[Any] = Counter()
    for call in one.calls:
        shape = call.shape
        if call.is_refused or len(shape.group.ranks) == 1:
            continue
        group, places = groups[shape.group]
        if not shape.is_message:
            key: Key = (group, numbers[group])
            numbers[group] += 1
        else:
            peer = call.source_rank if shape.peer is None else shape.peer
            ends = (places[one.rank], places.get(peer, -1) if peer is not None else -1)
            message = (group, *(ends if shape.collective == "send" else ends[::-1]), shape.tag)
            key = (*message, numbers[shape.collective, message])
            numbers[shape.collective, message] += 1
        yield key, places[one.rank], call
