"""Whether the calls with which a group's members come together are one call, as the engine's agreement has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shim.core.groups.agreement import NEW_GROUP
from shim.trace.calls import Call, Shape

Calls = Mapping[int, Call]


def difference(calls: Calls) -> str:
    """Say in what the *calls* of all members, by world rank, differ; nothing where they are one."""
    shapes = {rank: call.shape for rank, call in calls.items()}
    if what := _first_that_differs(shapes, _COMMON):
        return what
    first = next(iter(shapes.values()))
    if first.is_of_objects and first.collective != "barrier":  # their pickles may have any sizes
        return ""
    if first.collective == "barrier":
        return _other_barriers(shapes)
    return _MORE[first.collective](shapes) if first.collective in _MORE else ""


def _first_that_differs(shapes: Mapping[int, Shape], facts: Mapping[str, Callable[[Shape], Any]]) -> str:
    for what, fact in facts.items():
        values = [fact(shape) for shape in shapes.values()]
        if any(value != values[0] for value in values[1:]):
            return what
    return ""


def _tensor(shape: Shape) -> Any:
    given = shape.inputs or shape.outputs
    return given and given.tensors


_COMMON: dict[str, Callable[[Shape], Any]] = {
    "the operation": lambda shape: shape.collective,
    "the root": lambda shape: shape.root,
    "the reduction": lambda shape: shape.op,
    "the dtype": lambda shape: shape.dtype if not shape.is_of_objects else "",
}


def _same_tensors(shapes: Mapping[int, Shape]) -> str:
    return _first_that_differs(shapes, {"the shape": _tensor})


def _of_root(role: str, others: str) -> Callable[[Mapping[int, Shape]], str]:
    """The root's part for each rank, its *role*, has as many elements as that rank's *others*."""

    def check(shapes: Mapping[int, Shape]) -> str:
        first = next(iter(shapes.values()))
        if first.root not in shapes:
            return ""
        parts = shapes[first.root].parts(role)
        return _first_unlike({rank: (parts, place) for place, rank in enumerate(first.group.ranks)}, shapes, others)

    return check


def _first_unlike(wanted: Mapping[int, tuple[tuple[int, ...], int]], shapes: Mapping[int, Shape], role: str) -> str:
    for rank, shape in shapes.items():
        parts, place = wanted[rank]
        if place >= len(parts) or sum(shape.parts(role)) != parts[place]:
            return "the sizes of the parts"
    return ""


def _gathered(shapes: Mapping[int, Shape]) -> str:
    ranks = next(iter(shapes.values())).group.ranks
    for shape in shapes.values():
        parts = shape.parts("outputs")
        for place, rank in enumerate(ranks):
            if rank in shapes and (place >= len(parts) or parts[place] != sum(shapes[rank].parts("inputs"))):
                return "the sizes of the parts"
    return ""


def _scattered_sums(shapes: Mapping[int, Shape]) -> str:
    ranks = next(iter(shapes.values())).group.ranks
    parts = [shape.parts("inputs") for shape in shapes.values()]
    if any(one != parts[0] for one in parts):
        return "the sizes of the parts"
    return _first_unlike({rank: (parts[0], place) for place, rank in enumerate(ranks)}, shapes, "outputs")


def _exchanged(shapes: Mapping[int, Shape]) -> str:
    places = {rank: place for place, rank in enumerate(next(iter(shapes.values())).group.ranks)}
    sent = {rank: shape.parts("inputs") for rank, shape in shapes.items()}
    taken = {rank: shape.parts("outputs") for rank, shape in shapes.items()}
    size = len(places)
    if any(len(parts) != size for parts in (*sent.values(), *taken.values())):
        return "the number of parts"
    for sender in shapes:
        for receiver in shapes:
            if sent[sender][places[receiver]] != taken[receiver][places[sender]]:
                return "the sizes of the parts"
    return ""


def _other_barriers(shapes: Mapping[int, Shape]) -> str:
    """Barriers say what comes after them. Groups without a rank in common may be made at once, where each of their members says so."""
    texts = {rank: shape.before for rank, shape in shapes.items()}
    if len(set(texts.values())) == 1:
        return ""
    if not all(text.startswith(NEW_GROUP) for text in texts.values()):
        return "what comes after the barrier"
    members = {rank: _members(text) for rank, text in texts.items()}
    for theirs in members.values():
        if any(members.get(rank, theirs) != theirs for rank in theirs):
            return "the members of the new group"
    return ""


def _members(text: str) -> list[int]:
    told = text.removeprefix(NEW_GROUP).partition(" ")[2]
    if "-" not in told:
        return [int(one) for one in told.split(", ")]
    span, _, step = told.partition(":")
    first, _, last = span.partition("-")
    return list(range(int(first), int(last) + 1, int(step or 1)))


_MORE: dict[str, Callable[[Mapping[int, Shape]], str]] = {
    "all_reduce": _same_tensors,
    "reduce": _same_tensors,
    "broadcast": _same_tensors,
    "all_gather": _gathered,
    "gather": _of_root("outputs", "inputs"),
    "scatter": _of_root("inputs", "outputs"),
    "reduce_scatter": _scattered_sums,
    "all_to_all": _exchanged,
}
