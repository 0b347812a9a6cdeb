"""What the other ranks of a rehearsal have passed, as far as it was recorded before: by an earlier pass of it, or by a real job.

Its calls are answered with that, where all of it is known.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from shim._native import Request
from shim.core.reduce_ops import ReduceOp

GroupKey = tuple[str, tuple[int, ...], int]  # its name, its world ranks, and which of those with both it is
Key = tuple[Any, ...]


class Sent(NamedTuple):
    """What a rank has passed: the *digest* by which its bytes are kept, and the *sizes* of its parts in bytes."""

    digest: int
    sizes: tuple[int, ...]
    are_integers: bool = True


Table = Mapping[Key, Mapping[int, Sent]]  # by group rank


@dataclass
class _Known:
    """See ``know``."""

    folder: str = ""
    table: Table = field(default_factory=dict)
    stored: Mapping[tuple[str, bytes], bytes] = field(default_factory=dict)
    ran: Collection[int] = ()


_known = _Known()
_made: Counter[tuple[str, tuple[int, ...]]] = Counter()


def know(folder: str, table: Table, stored: Mapping[tuple[str, bytes], bytes], ran: Collection[int]) -> None:
    """Answer from *table*, whose bytes are in *folder*, and have what is *stored*, by store and key, be there for ranks that ask.

    Other world ranks than *ran* pass what the first one does of which something is known, so that all ranks are told the same.
    """
    global _known
    _known = _Known(folder, table, stored, ran)


def stored(where: str, key: bytes) -> bytes | None:
    """Return what some rank has stored there, if that is known."""
    return _known.stored.get((where, key))


def new_group_key(name: str, ranks: Sequence[int]) -> GroupKey:
    """Return the key of a group that is being made."""
    _made[name, tuple(ranks)] += 1
    return name, tuple(ranks), _made[name, tuple(ranks)]


def is_known(key: Key) -> bool:
    return key in _known.table


def answer(request: Request, key: Key, senders: Sequence[int], own: int) -> bool:
    """Write into *request*'s outputs what the *senders*, of whom this rank is *own*, have passed to the call *key*.

    Tell whether all of that is known, and fits.
    """
    table = _known.table.get(key)
    others = [rank for rank in senders if rank != own]
    if not table or not others:
        return False
    if lacking := [rank for rank in others if rank not in table]:
        (_, ranks, _), *_ = key
        if any(ranks[rank] in _known.ran for rank in lacking):
            return False
        table = {**table, **dict.fromkeys(lacking, table[min(table)])}
    mine = list(map(bytes, request.inputs))
    parts = [mine if rank == own else _parts(table[rank]) for rank in senders]
    if request.collective in ("scatter", "all_to_all", "reduce_scatter"):
        if any(len(one) != request.size for one in parts):
            return False
        contents = [one[request.rank] for one in parts]
    else:
        contents = [b"".join(one) for one in parts]
    if request.collective in ("all_reduce", "reduce", "reduce_scatter"):
        (output,) = request.outputs
        if any(len(one) != len(output) for one in contents) or ReduceOp(request.op) == ReduceOp.PREMUL_SUM:
            return False
        request.combine(output, [memoryview(one) for one in contents], [1.0] * len(contents))
        return True
    if [len(one) for one in contents] != [len(output) for output in request.outputs]:
        return False
    for output, content in zip(request.outputs, contents, strict=True):
        output[:] = content
    return True


def _parts(sent: Sent) -> list[bytes]:
    content, parts = _content(sent.digest), []
    for size in sent.sizes:
        parts.append(content[:size])
        content = content[size:]
    return parts


@cache
def _content(digest: int) -> bytes:
    with open(os.path.join(_known.folder, f"{digest:016x}"), "rb") as file:
        return file.read()
