"""Calls whose tensors share memory with each other, are given other memory meanwhile, or were kept for a gradient: drawn as in ``operations``."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from shim.conformance.oracle import Array
from shim.conformance.soak.draw import Draw, Kind, combined, place
from shim.conformance.soak.operations import ME, Made, Operation
from shim.core import calls
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Batch, Work


def reduced_views(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    """Reduce views of one tensor together, by ops of their own: each reads what was there before, the last one's result stays."""
    made, whole = Made(), draw.arrays(kind, [count] * draw.size)
    cuts = [_cut(draw, count) for _ in range(2 + draw.below(3))]
    names = [draw.one([name for name in kind.ops if name != "PREMUL_SUM"]) for _ in cuts]
    expected = whole[group.rank].copy()
    for cut, name in zip(cuts, names, strict=True):
        expected[cut] = combined(kind, [one[cut] for one in whole], name, None)
    mine = made.expect(place(draw, whole[group.rank]), expected).tensor
    views = [mine[cut] for cut in cuts]
    works = [calls.all_reduce(ME, group, one, one, ReduceOp[name]) for one, name in zip(views, names, strict=True)]
    made.works.append(Batch(works))
    return made


def _overlapping_outputs(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    """Gather into outputs that overlap, and the input among them: the last rank's data stays."""
    made, inputs = Made(), draw.arrays(kind, [count] * draw.size)
    starts = [draw.below(count + 1) for _ in range(draw.size)]
    before = draw.array(kind, 2 * count)
    expected = before.copy()
    expected[starts[0] : starts[0] + count] = inputs[group.rank]
    placed = place(draw, expected)
    for start, one in zip(starts, inputs, strict=True):
        expected[start : start + count] = one
    memory = made.expect(placed, expected).tensor
    outputs = [memory[start : start + count] for start in starts]
    made.works.append(calls.all_gather(ME, group, outputs, outputs[0], now=now))
    return made


def _ring_in_place(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    """Pass what a tensor holds on to the next rank and receive into the same tensor."""
    made, contents, tag = Made(), draw.arrays(kind, [count] * draw.size), draw.below(1 << 30)
    if group.size == 1:
        return made
    after, before = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    mine = made.expect(place(draw, contents[group.rank]), contents[before]).tensor
    receive = calls.receive(ME, group, mine, before, tag)
    made.works.append(Batch([receive, calls.send(ME, group, mine, after, tag)]))
    made.works[0].start()
    return made


def _taken_memory(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    """Gather what is in a torch tensor that is given other memory as soon as the call has begun."""
    made, inputs = Made(), [one.view(np.uint8) for one in draw.arrays(kind, [count] * draw.size)]
    take = draw.one((_other_data, _other_storage, _no_storage))
    outs, torch = made.outputs(draw, inputs), _torch()
    mine: Any = inputs[group.rank].copy()
    if torch is not None:
        mine = torch.from_numpy(mine).clone()
    made.works.append(calls.all_gather(ME, group, outs, mine))
    made.works[0].start()
    if torch is not None:
        take(torch, mine, made.works[0])
    return made


def _other_data(torch: Any, tensor: Any, work: Work) -> None:
    tensor.data = torch.full((tensor.numel(),), 255, dtype=torch.uint8)


def _other_storage(torch: Any, tensor: Any, work: Work) -> None:
    tensor.set_(torch.full((1,), 255, dtype=torch.uint8))


def _no_storage(torch: Any, tensor: Any, work: Work) -> None:
    try:
        tensor.untyped_storage().resize_(0)
    except RuntimeError:
        return
    if not work.is_completed():
        raise AssertionError("torch gave the memory back of a tensor that is being sent")


def _kept_for_a_gradient(draw: Draw, group: ProcessGroup, kind: Kind, count: int, now: bool) -> Made:
    """Overwrite a torch tensor that a gradient needs: its backward must raise, and one from the new elements be right."""
    made, inputs, torch = Made(), [np.arange(count, dtype=float) + rank for rank in range(draw.size)], _torch()
    summed = np.sum(inputs, axis=0)
    if torch is None:
        mine: Any = made.expect(place(draw, inputs[group.rank]), summed).tensor
        made.works.append(calls.all_reduce(ME, group, mine, mine, ReduceOp.SUM, now=now))
        return made
    mine = torch.from_numpy(inputs[group.rank])
    weight = torch.ones(count, dtype=torch.float64, requires_grad=True)
    loss = (weight * mine).sum()
    made.works.append(calls.all_reduce(ME, group, mine, mine, ReduceOp.SUM, now=now))
    made.checks.append(lambda: _wrong_gradient(loss, weight, mine, summed))
    return made


def _wrong_gradient(loss: Any, weight: Any, kept: Any, summed: Array) -> str:
    try:
        loss.backward()
    except RuntimeError:
        (weight * kept).sum().backward()
        return "" if (weight.grad.numpy() == summed).all() else "the gradient is wrong"
    return "a gradient was taken of what had been overwritten"


def _cut(draw: Draw, count: int) -> slice:
    """Draw a part of *count* elements, of one in a while every other."""
    start, end = sorted((draw.below(count + 1), draw.below(count + 1)))
    return slice(start, end, 2 if draw.is_rare(3) else 1)


def _torch() -> Any:
    """Return torch, None where it is not installed: then NumPy's arrays stand for its tensors, and keep their memory."""
    return importlib.import_module("torch") if importlib.util.find_spec("torch") is not None else None


ON_SHARED_TENSORS: Sequence[Operation] = (
    reduced_views, _overlapping_outputs, _ring_in_place, _taken_memory, _kept_for_a_gradient,
)  # fmt: skip
