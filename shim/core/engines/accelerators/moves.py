"""How each collective is made of the functions that the backends of torch have in common, which put operations on the current stream.

Data that is only moved counts as bytes, so that its dtype does not matter. Which functions are called depends on nothing but the sizes,
on which the ranks have agreed. Of gather and scatter, which some backends lack, each is an all_to_all in which most parts are empty.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shim.core.engines.accelerators.arithmetic import Reduction
from shim.core.engines.accelerators.parts import Parts, write


@dataclass(frozen=True)
class Call:
    """A collective of group rank *rank* by *backend*; only that with a *root* has one, and only a *reduction* is one."""

    backend: Any
    rank: int
    inputs: Parts
    outputs: Parts
    root: int
    reduction: Reduction

    def bytes_of(self, part: Any) -> Any:
        return part.view(sys.modules["torch"].uint8)

    def options(self, name: str, **fields: Any) -> Any:
        """Return torch's options called *name*, with what *fields* say."""
        made = getattr(sys.modules["torch"].distributed, name)()
        for field, value in fields.items():
            setattr(made, field, value)
        return made


def broadcast(call: Call) -> None:
    (part,) = call.inputs.each or call.outputs.each
    _broadcast(call, part, call.root)


def all_reduce(call: Call) -> None:
    (source,), (target,) = call.inputs.each, call.outputs.each
    _combined(call, source, target, lambda part: _all_reduce(call, part))


def reduce(call: Call) -> None:
    (source,) = call.inputs.each
    _reduce(call, source, call.outputs.each[0] if call.rank == call.root else None, call.root)


def all_gather(call: Call) -> None:
    (source,), outputs = call.inputs.each, call.outputs
    if not outputs.is_even():
        for rank, target in enumerate(outputs.each):
            if rank == call.rank:
                write(target, source)
            _broadcast(call, target, rank)
        return
    whole = source.new_empty(sum(outputs.sizes())) if outputs.whole is None else outputs.whole
    call.backend._allgather_base(call.bytes_of(whole), call.bytes_of(source)).wait()
    if outputs.whole is None:
        for target, part in zip(outputs.each, whole.chunk(len(outputs)), strict=True):
            write(target, part)


def gather(call: Call) -> None:
    (source,) = call.inputs.each
    given = [source if rank == call.root else source[:0] for rank in range(call.backend.size())]
    taken = call.outputs.each if call.rank == call.root else [source[:0]] * len(given)
    _exchange(call, Parts(given), Parts(taken))


def scatter(call: Call) -> None:
    (target,) = call.outputs.each
    taken = [target if rank == call.root else target[:0] for rank in range(call.backend.size())]
    given = call.inputs.each if call.rank == call.root else [target[:0]] * len(taken)
    _exchange(call, Parts(given), Parts(taken))


def reduce_scatter(call: Call) -> None:
    inputs, (target,) = call.inputs, call.outputs.each
    if not inputs.is_even():
        for rank, source in enumerate(inputs.each):
            _reduce(call, source, target if rank == call.rank else None, rank)
        return
    reduction = call.reduction
    options = call.options("ReduceScatterOptions", reduceOp=reduction.torch_op())
    given = reduction.viewed(reduction.prepared(_joined(inputs)))
    call.backend._reduce_scatter_base(reduction.viewed(target), given, options).wait()
    reduction.finish(target)


def all_to_all(call: Call) -> None:
    _exchange(call, call.inputs, call.outputs)


def _broadcast(call: Call, part: Any, root: int) -> None:
    options = call.options("BroadcastOptions", rootRank=root, rootTensor=0)
    call.backend.broadcast([call.bytes_of(part)], options).wait()


def _all_reduce(call: Call, part: Any) -> None:
    options = call.options("AllreduceOptions", reduceOp=call.reduction.torch_op())
    call.backend.allreduce([part], options).wait()


def _reduce(call: Call, source: Any, target: Any, root: int) -> None:
    """Combine the *source* of all ranks in *target* on the *root*. The others have none, and their sources are not written."""
    options = call.options("ReduceOptions", reduceOp=call.reduction.torch_op(), rootRank=root, rootTensor=0)
    room = sys.modules["torch"].empty_like(source) if target is None else target
    _combined(call, source, room, lambda part: call.backend.reduce([part], options).wait())


def _combined(call: Call, source: Any, target: Any, combine: Callable[[Any], object]) -> None:
    """Have *combine*, which works in place, make in *target* of each rank's *source* what the call's op says."""
    write(target, call.reduction.prepared(source))
    combine(call.reduction.viewed(target))
    call.reduction.finish(target)


def _exchange(call: Call, inputs: Parts, outputs: Parts) -> None:
    given = _joined(inputs)
    taken = given.new_empty(sum(outputs.sizes())) if outputs.whole is None else outputs.whole
    width = given.element_size()
    splits = [[size * width for size in parts.sizes()] for parts in (outputs, inputs)]
    options = call.options("AllToAllOptions")
    call.backend.alltoall_base(call.bytes_of(taken), call.bytes_of(given), *splits, options).wait()
    if outputs.whole is None:
        for target, part in zip(outputs.each, taken.split(outputs.sizes()), strict=True):
            write(target, part)


def _joined(parts: Parts) -> Any:
    return sys.modules["torch"].cat(list(parts.each)) if parts.whole is None else parts.whole
