"""The networks of the ranks, compared before they begin alike. Import this only where paddle is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from shim.core import calls, objects, tensors
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import MismatchError

_paddle: Any = sys.modules["paddle"]

# A parameter or buffer as the other ranks are told of it: its name, and what has to be the same.
_Part = tuple[str, str]


def start_from_rank_0(caller: Caller, world: ProcessGroup, layers: Any) -> None:
    """Give the parameters and buffers of *layers* the values that they have on rank 0 of the *world*.

    Raises MismatchError on every rank, before anything is written, where they are not as many, of the same shapes and dtypes in the
    same order, and the same ones to be trained. Their names may differ.
    """
    parts = dict(_parts_to_share(layers))
    told = objects.all_gather(caller, world, list(_described(parts)))
    assert told is not None, "every rank is in the world"
    for number, row in enumerate(zip_longest(*told)):
        if len({None if part is None else part[1] for part in row}) > 1:
            raise caller.explain(_difference(number, row, [len(one) for one in told]), world)
    for tensor in parts.values():
        calls.broadcast(caller, world, tensor.detach(), 0).wait()


def _parts_to_share(layers: Any) -> Iterator[tuple[str, Any]]:
    vocabulary = _paddle.base.core.VarDesc.VarType.VOCAB
    for name, tensor in layers._obtain_parameters_buffers().items():
        if not getattr(tensor, "no_sync", False) and tensor.type != vocabulary:
            yield name, tensor


def _described(parts: dict[str, Any]) -> Iterator[_Part]:
    seen: set[int] = set()
    for name, tensor in parts.items():
        kind = f"{tensors.dtype_name(tensor)} of shape {list(tensor.shape)}"
        if id(tensor) in seen:
            kind += ", once more"
        elif getattr(tensor, "trainable", False):
            kind += ", to be trained"
        seen.add(id(tensor))
        yield name, kind


def _difference(number: int, row: Sequence[_Part | None], counts: Sequence[int]) -> MismatchError:
    """Say what each rank has as its part *number*, where some have another one or none, and how many it has in all."""
    lines = [
        f"\n  rank {rank}: {'nothing' if part is None else ', '.join(part)} (it has {count})"
        for rank, (part, count) in enumerate(zip(row, counts, strict=True))
    ]
    return MismatchError(
        f"layers must have the same parameters and buffers on every rank, and differ at number {number + 1} of them{''.join(lines)}"
    )
