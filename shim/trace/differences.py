"""Compares two recordings call by call, whichever frameworks the programs used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np

from shim.trace.calls import Call, Recording

_FLOATING = ("bfloat16", "float16", "float32", "float64", "complex64", "complex128")
_CONTEXT = 2  # calls shown on either side of a difference


@dataclass(frozen=True)
class Difference:
    """The first call of *rank* that differs: its number, what each side has there, and the calls around it."""

    rank: int
    number: int  # counted from 1
    whats: tuple[str, ...]  # "dtype float32 | float64"
    left: Call | None
    right: Call | None
    before: tuple[Call, ...]  # equal on both sides
    left_after: tuple[Call, ...]
    right_after: tuple[Call, ...]


@dataclass
class Comparison:
    """The outcome: *differences* has at most one of each rank; *equal* counts the calls before it, *digests* those whose values were compared, *close* those whose values differ by no more than the tolerance; ``have_other_keys`` where these could not be."""

    ranks: int
    equal: int = 0
    digests: int = 0
    close: int = 0
    have_other_keys: bool = False
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether neither side has a call."""
        return not self.equal and not self.differences


Close = Callable[[str, int, int], bool]  # whether the values of a dtype that have these digests are close enough


def within(tolerance: float, folders: Sequence[Path]) -> Close:
    """Return a function that tells whether floating-point values differ by no more than *tolerance*, and this share of their size.

    *folders* have the values of both sides, as ``SHIM_TRACE_VALUES`` keeps them.
    """

    def are_close(dtype: str, one: int, other: int) -> bool:
        files = [folder / f"{digest:016x}" for folder, digest in zip(folders, (one, other), strict=True)]
        if dtype not in _FLOATING or not all(map(Path.exists, files)):
            return False
        left, right = (np.fromfile(file, "uint16" if dtype == "bfloat16" else dtype) for file in files)
        if dtype == "bfloat16":  # the upper half of a float32
            left, right = ((each.astype("uint32") << 16).view("float32") for each in (left, right))
        return left.shape == right.shape and np.allclose(left, right, tolerance, tolerance, equal_nan=True)

    return are_close


def compare(left: Recording, right: Recording, *, digests: bool = True, close: Close | None = None) -> Comparison:
    """Compare what the ranks of two recordings called, in the order of each rank's program.

    Left out are the calls that shim makes itself, forms of lists, asynchrony, tags, names of groups, and shapes of as many
    elements. A call in the background whose end the program has not seen counts as ended. Digests are compared where both sides have them, of one key, unless *digests* is False; other ones count as equal if *close* does.
    """
    ranks = sorted({*left.ranks, *right.ranks})
    outcome = Comparison(len(ranks))
    for rank in ranks:
        keys = {side.ranks[rank].digest_key for side in (left, right) if rank in side.ranks} - {0}
        outcome.have_other_keys |= digests and len(keys) > 1
        _compare_rank(rank, _calls(left, rank), _calls(right, rank), outcome, digests and len(keys) < 2, close)
    return outcome


def _calls(recording: Recording, rank: int) -> list[Call]:
    there = recording.ranks.get(rank)
    return [] if there is None else [call for call in there.calls if not call.shape.is_internal]


def _compare_rank(
    rank: int, left: Sequence[Call], right: Sequence[Call], outcome: Comparison, digests: bool, close: Close | None
) -> None:
    for number, (one, other) in enumerate(zip_longest(left, right)):
        whats = _whats(one, other, digests, close)
        if whats:
            around = slice(number + 1, number + 1 + _CONTEXT)
            before = tuple(left[max(0, number - _CONTEXT) : number])
            outcome.differences.append(
                Difference(rank, number + 1, whats, one, other, before, tuple(left[around]), tuple(right[around]))
            )
            return
        outcome.equal += 1
        outcome.digests += digests and _has_digests(one) and _has_digests(other)
        outcome.close += close is not None and bool(_whats(one, other, digests, None))


def _has_digests(call: Call | None) -> bool:
    return call is not None and (call.input_digest is not None or call.output_digest is not None)


# What has to be equal, by the name under which a difference is told.
_COMPARED: dict[str, Callable[[Call], object]] = {
    "collective": lambda call: call.shape.collective + " of objects" * call.shape.is_of_objects,
    "ranks of the group": lambda call: list(call.shape.group.ranks),
    "root": lambda call: call.shape.root,
    "peer": lambda call: call.shape.peer,
    "op": lambda call: call.shape.op,
    "factor": lambda call: call.shape.factor,
    "dtype": lambda call: call.shape.dtype,
    "elements of the inputs": lambda call: _elements(call, "inputs"),
    "elements of the outputs": lambda call: _elements(call, "outputs"),
    "end": lambda call: call.failure.kind if call.failure else "none" if call.is_open else "ended",
}
_NOT_OF_OBJECTS = (
    "dtype",
    "elements of the inputs",
    "elements of the outputs",
)  # pickles of other frameworks' tensors differ


def _whats(left: Call | None, right: Call | None, digests: bool, close: Close | None) -> tuple[str, ...]:
    """Return what differs between two calls; nothing where they are equal."""
    if left is None or right is None:
        return ("call there | none" if right is None else "none | call there",)
    of_objects = left.shape.is_of_objects and right.shape.is_of_objects
    found = []
    for name, value in _COMPARED.items():
        one, other = value(left), value(right)
        if one != other and not (of_objects and name in _NOT_OF_OBJECTS):
            found.append(f"{name} {one} | {other}")
            if name == "collective":  # nothing else of them can be compared
                break
    if not found and digests and not of_objects:
        for name, one, other in (
            ("values of the inputs", left.input_digest, right.input_digest),
            ("values of the outputs", left.output_digest, right.output_digest),
        ):
            if one in (None, other) or other is None or (close is not None and close(left.shape.dtype, one, other)):
                continue
            found.append(f"{name}: digest {one:016x} | {other:016x}")
    return tuple(found)


def _elements(call: Call, role: str) -> object:
    """Return the elements of each part, as one number where all are alike: equal whether they are a list or one tensor."""
    parts = call.shape.parts(role)
    return parts[0] if len(parts) == 1 else list(parts)
