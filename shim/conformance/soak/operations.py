"""One function per kind of call: draw it, make this rank's part of it, and say what must be in which tensor afterwards.

Some calls cannot be carried out: one rank's arguments are wrong, or do not fit the others'. Every rank is told, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from shim.conformance import oracle
from shim.conformance.oracle import Array
from shim.conformance.soak.draw import Draw, Kind, Placed, combined, place
from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Work
from shim.errors import ArgumentError, MismatchError, ShimError

ME = Caller("soak")


@dataclass
class Made:
    """A call of this rank: what is under way, what must be in each tensor when it has ended, and what to ask then: '' is right."""

    works: list[Work] = field(default_factory=list)
    outcomes: list[tuple[Placed, Array]] = field(default_factory=list)
    checks: list[Callable[[], str]] = field(default_factory=list)

    def expect(self, placed: Placed, expected: Array) -> Placed:
        self.outcomes.append((placed, expected))
        return placed

    def input(self, draw: Draw, array: Array) -> Array:
        """Return a tensor of *array*, which is to stay as it is."""
        return self.expect(place(draw, array), array).tensor

    def output(self, draw: Draw, expected: Array) -> Array:
        """Return a tensor that is to become what is *expected*."""
        return self.expect(place(draw, np.ones_like(expected)), expected).tensor

    def outputs(self, draw: Draw, expected: Iterable[Array]) -> list[Array]:
        return [self.output(draw, one) for one in expected]

    def inputs(self, draw: Draw, arrays: Iterable[Array]) -> list[Array]:
        return [self.input(draw, one) for one in arrays]


Operation = Callable[[Draw, ProcessGroup, Kind, int, bool], Made]


def _broadcast(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, inputs, root = Made(), draw.arrays(kind, [count] * draw.size), draw.rank()
    mine = made.expect(place(draw, inputs[group.rank]), inputs[root]).tensor
    made.works.append(calls.broadcast(ME, group, mine, root, now=now))
    return made


def _all_reduce(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, inputs, (op, factors) = Made(), draw.arrays(kind, [count] * draw.size), _reduction(draw, kind)
    expected = combined(kind, inputs, op.name, factors)
    if draw.is_rare(2):
        out = mine = made.expect(place(draw, inputs[group.rank]), expected).tensor
    else:
        out, mine = made.output(draw, expected), made.input(draw, inputs[group.rank])
    made.works.append(calls.all_reduce(ME, group, out, mine, op, _mine(factors, group), now=now))
    return made


def _reduce(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, inputs, (op, factors) = Made(), draw.arrays(kind, [count] * draw.size), _reduction(draw, kind)
    root, mine = draw.rank(), inputs[group.rank]
    expected = combined(kind, inputs, op.name, factors) if group.rank == root else mine
    tensor = made.expect(place(draw, mine), expected).tensor
    made.works.append(calls.reduce(ME, group, tensor, tensor, op, root, _mine(factors, group), now=now))
    return made


def _all_gather(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, counts = Made(), draw.counts(count)
    inputs = draw.arrays(kind, counts)
    mine = made.input(draw, inputs[group.rank])
    if draw.is_rare(2):
        outs = made.outputs(draw, inputs)
        made.works.append(calls.all_gather(ME, group, outs, mine, now=now))
    else:
        out = made.output(draw, oracle.joined(inputs))
        made.works.append(calls.all_gather(ME, group, out, mine, counts, now=now))
    return made


def _gather(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, inputs, root = Made(), draw.arrays(kind, draw.counts(count)), draw.rank()
    mine = made.input(draw, inputs[group.rank])
    outs = made.outputs(draw, inputs) if group.rank == root else None
    made.works.append(calls.gather(ME, group, outs, mine, root, now=now))
    return made


def _scatter(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, parts, root = Made(), draw.arrays(kind, draw.counts(count)), draw.rank()
    out = made.output(draw, parts[group.rank])
    mine = made.inputs(draw, parts) if group.rank == root else None
    made.works.append(calls.scatter(ME, group, out, mine, root, now=now))
    return made


def _reduce_scatter(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, counts, (op, factors) = Made(), draw.counts(count), _reduction(draw, kind)
    inputs = [draw.arrays(kind, counts) for _ in range(draw.size)]
    out = made.output(draw, combined(kind, [parts[group.rank] for parts in inputs], op.name, factors))
    if draw.is_rare(2):
        mine: Array | list[Array] = made.inputs(draw, inputs[group.rank])
        splits = None
    else:
        mine, splits = made.input(draw, oracle.joined(inputs[group.rank])), counts
    work = calls.reduce_scatter(ME, group, out, mine, op, _mine(factors, group), splits, now=now)
    made.works.append(work)
    return made


def _all_to_all(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    made, matrix = Made(), draw.matrix(kind, count)
    sent, expected = matrix[group.rank], [parts[group.rank] for parts in matrix]
    if draw.is_rare(2):
        outs = made.outputs(draw, expected)
        made.works.append(calls.all_to_all(ME, group, outs, made.inputs(draw, sent), now=now))
    else:
        out, mine = made.output(draw, oracle.joined(expected)), made.input(draw, oracle.joined(sent))
        received, given = ([part.size for part in parts] for parts in (expected, sent))
        made.works.append(calls.all_to_all(ME, group, out, mine, received, given, now=now))
    return made


def _barrier(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    return Made([calls.barrier(ME, group, now=now)])


def _messages(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    """Draw two ranks; one sends the other a few messages, which are received in another order, some of them from any rank."""
    made = Made()
    sender, receiver = draw.rank(), draw.rank()
    tags = [draw.below(1 << 30) for _ in range(1 + draw.below(3))]
    contents = draw.arrays(kind, [count // (place + 1) for place in range(len(tags))])
    order = draw.some(range(len(tags)), len(tags))
    from_any = draw.is_rare(3)
    if sender == receiver:
        return made
    if group.rank == sender:
        for tag, content in zip(tags, contents, strict=True):
            made.works.append(calls.send(ME, group, made.input(draw, content), receiver, tag))
    elif group.rank == receiver:
        for place_ in order:
            tensor = made.output(draw, contents[place_])
            made.works.append(calls.receive(ME, group, tensor, None if from_any else sender, tags[place_]))
    for work in made.works:
        work.start()
    return made


def _reduction(draw: Draw, kind: Kind) -> tuple[ReduceOp, list[float] | None]:
    name = draw.one(kind.ops)
    return ReduceOp[name], draw.factors() if name == "PREMUL_SUM" else None


def _mine(factors: Sequence[float] | None, group: ProcessGroup) -> float:
    return 1.0 if factors is None else factors[group.rank]


COMPUTING: tuple[Operation, ...] = (_all_reduce, _reduce, _reduce_scatter)
OPERATIONS: tuple[Operation, ...] = (
    *COMPUTING, _broadcast, _all_gather, _gather, _scatter, _all_to_all, _barrier, _messages,
)  # fmt: skip


_LARGE = 70_000  # elements: past the arrival lines and one slot of a ring
Mistake = Callable[
    [ProcessGroup, Array, bool, bool], Work
]  # of the group, with this tensor, by this rank or not, at once or not


def _other_shape(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    part = tensor[:3] if is_mine else tensor[:4]
    return calls.all_reduce(ME, group, part, part, ReduceOp.SUM, now=now)


def _other_operation(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    if is_mine:
        return calls.broadcast(ME, group, tensor, 0, now=now)
    return calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=now)


def _other_root(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    return calls.broadcast(ME, group, tensor, int(is_mine), now=now)


def _wrong_argument(group: ProcessGroup, tensor: Array, is_mine: bool, now: bool) -> Work:
    output = tensor[:5] if is_mine else tensor[:4]
    return calls.all_reduce(ME, group, output, tensor[:4].copy(), ReduceOp.SUM, now=now)


MISTAKES: tuple[Mistake, ...] = (_other_shape, _other_operation, _other_root, _wrong_argument)


def make_mistakes(draw: Draw, group: ProcessGroup, now: bool) -> list[str]:
    """Let a drawn rank make a drawn mistake, once or a few times on end; return of each what is wrong with how it ended, if anything.

    In a group of one rank there is nobody to disagree with, and nothing is done.
    """
    kind, culprit, times = draw.one(MISTAKES), draw.rank(), 1 + draw.below(3)
    if group.size == 1:
        return []
    is_mine = group.rank == culprit
    expected = ArgumentError if kind is _wrong_argument and is_mine else MismatchError
    told = [_made(kind, group, is_mine, now, expected) for _ in range(times)]
    return [f"{kind.__name__[1:]} by rank {culprit}: {one}" if one else "" for one in told]


def _made(kind: Mistake, group: ProcessGroup, is_mine: bool, now: bool, expected: type[ShimError]) -> str:
    before = np.arange(_LARGE, dtype=float) * (group.rank + 2)
    tensor = before.copy()
    try:
        kind(group, tensor, is_mine, now).wait()
    except expected:
        return "" if (tensor == before).all() else "an output was written"
    except ShimError as error:
        return f"{type(error).__name__} where {expected.__name__} was expected: {error}"
    return f"nothing where {expected.__name__} was expected"
