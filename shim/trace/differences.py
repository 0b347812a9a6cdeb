"""Compares two recordings call by call, whichever frameworks the programs used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from shim.trace.calls import Call, Recording

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
    """The outcome: *differences* has at most one of each rank; *equal* counts the calls before it, *digests* those whose values were compared; ``have_other_keys`` where these could not be."""

    ranks: int
    equal: int = 0
    digests: int = 0
    have_other_keys: bool = False
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether neither side has a call."""
        return not self.equal and not self.differences


def compare(left: Recording, right: Recording, *, digests: bool = True) -> Comparison:
    """Compare what the ranks of two recordings called, in the order of each rank's program.

    Left out are the calls that shim makes itself, forms of lists, asynchrony, tags, names of groups, and shapes of as many
    elements. A call in the background whose end the program has not seen counts as ended. Digests are compared where both sides have them, of one key, unless *digests* is False.
    """
    ranks = sorted({*left.ranks, *right.ranks})
    outcome = Comparison(len(ranks))
    for rank in ranks:
        keys = {side.ranks[rank].digest_key for side in (left, right) if rank in side.ranks} - {0}
        outcome.have_other_keys |= digests and len(keys) > 1
        _compare_rank(rank, _calls(left, rank), _calls(right, rank), outcome, digests and len(keys) < 2)
    return outcome


def _calls(recording: Recording, rank: int) -> list[Call]:
    there = recording.ranks.get(rank)
    return [] if there is None else [call for call in there.calls if not call.shape.is_internal]


def _compare_rank(rank: int, left: Sequence[Call], right: Sequence[Call], outcome: Comparison, digests: bool) -> None:
    for number, (one, other) in enumerate(zip_longest(left, right)):
        whats = _whats(one, other, digests)
        if whats:
            around = slice(number + 1, number + 1 + _CONTEXT)
            before = tuple(left[max(0, number - _CONTEXT) : number])
            outcome.differences.append(
                Difference(rank, number + 1, whats, one, other, before, tuple(left[around]), tuple(right[around]))
            )
            return
        outcome.equal += 1
        outcome.digests += digests and _has_digests(one) and _has_digests(other)


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


def _whats(left: Call | None, right: Call | None, digests: bool) -> tuple[str, ...]:
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
            if one is not None and other is not None and one != other:
                found.append(f"{name}: digest {one:016x} | {other:016x}")
    return tuple(found)


def _elements(call: Call, role: str) -> object:
    """Return the elements of each part, as one number where all are alike: equal whether they are a list or one tensor."""
    parts = call.shape.parts(role)
    return parts[0] if len(parts) == 1 else list(parts)
