"""What the functional collectives carry out, on any framework's tensors: outputs are made, inputs are left alone.

The tensors here have no gradients; ``autograd`` gives torch's the ones they need. Ranks are group ranks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from shim.core import calls
from shim.core.callers import Caller
from shim.core.engines.base import Splits
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import copy_of, framework_of, new_like
from shim.core.tensors.unreadable import why_not_dense
from shim.core.work import Work, finish
from shim.errors import ShimError, TensorError

Shape = tuple[int, ...]
READS_MEMORY = True  # of the tensors that it is given
_HERE = sys.modules[__name__]


class Call(NamedTuple):
    """Who calls in which group, and whether the result may still be on its way when the call returns.

    Such a result is torch's own kind, so only calls with torch's tensors may ask for it. Works are put into *unstarted*
    where there is such a list: who made it carries them out. *carrier* is the module whose functions carry the call out:
    this one, ``graph_calls`` while torch traces or transforms the caller, or ``seen_calls`` while one of its modes looks on.
    """

    caller: Caller
    group: ProcessGroup
    in_background: bool = False
    unstarted: list[Work] | None = None
    carrier: Any = _HERE

    def waiting(self) -> Call:
        """Return the same call, whose result is there when it returns."""
        return self._replace(in_background=False, unstarted=None)

    def refuse(self, error: ShimError) -> NoReturn:
        """Raise *error*, and let the other ranks, who wait in the same collective, know."""
        calls.refuse(self.caller, self.group, error)

    def check_tensors(self, tensors: Sequence[Any], role: str = "input") -> None:
        """Refuse what is no tensor of a framework, and torch's kinds of tensor that have no plain memory."""
        for tensor in tensors:
            framework = framework_of(type(tensor))
            if not framework:
                self.refuse(TensorError(f"{{{role}}} must be a tensor, got a {type(tensor).__qualname__}"))
            if framework == "torch" and (why := why_not_dense(tensor)):
                self.refuse(TensorError(why.replace("{role}", f"{{{role}}}")))

    def plain(self, tensor: Any) -> Any:
        """Return torch's *tensor* as the carrier reads it: the engine wants elements without a history, one after the other."""
        if not self.carrier.READS_MEMORY:
            return tensor
        return tensor.detach().resolve_conj().resolve_neg().contiguous()

    def steady(self, tensor: Any) -> Any:
        """Return *tensor*, or a copy where the caller may change it before the collective has read it."""
        return copy_of(tensor) if self.in_background else tensor

    def zeros(self, tensor: Any, shape: Shape) -> Any:
        """Return a new tensor like *tensor* of *shape*, full of zeros."""
        made = new_like(tensor, shape)
        made[...] = 0
        return made

    def result(self, work: Work, output: Any) -> Any:
        """Carry *work* out, here or in the background, and return *output*, or what stands for it meanwhile."""
        if self.unstarted is None:
            finish(work, self.in_background)
        else:
            self.unstarted.append(work)
        if not self.in_background:
            return output
        from shim.frontends.torch._functional.async_tensor import in_flight

        return in_flight(output, work)


def broadcast(call: Call, tensor: Any, root: int) -> Any:
    """Return a copy of *root*'s tensor."""
    output = copy_of(tensor)
    return call.result(calls.broadcast(call.caller, call.group, output, root), output)


def all_reduce(call: Call, tensor: Any, op: ReduceOp, factor: float) -> Any:
    """Return all ranks' tensors combined."""
    output = new_like(tensor)
    return call.result(
        calls.all_reduce(call.caller, call.group, output, call.steady(tensor), op, factor),
        output,
    )


def reduce(call: Call, tensor: Any, op: ReduceOp, factor: float, root: int) -> Any:
    """Return the combination on *root* and zeros elsewhere."""
    output = new_like(tensor) if call.group.rank == root else call.zeros(tensor, tuple(tensor.shape))
    return call.result(
        calls.reduce(call.caller, call.group, output, call.steady(tensor), op, root, factor),
        output,
    )


def all_gather(call: Call, tensor: Any, output: Any = None) -> Any:
    """Return all ranks' tensors one after the other along dimension 0, in *output* where there is one."""
    if output is None:
        rows, rest = (tensor.shape[0], tuple(tensor.shape[1:])) if len(tensor.shape) else (1, ())
        output = new_like(tensor, (call.group.size * rows, *rest))
    return call.result(calls.all_gather(call.caller, call.group, output, call.steady(tensor), whole=True), output)


def all_gather_parts(call: Call, tensor: Any, shapes: Sequence[Shape]) -> tuple[Any, ...]:
    """Return each rank's tensor, whose shape is known from *shapes*."""
    outputs = [new_like(tensor, shape) for shape in shapes]
    calls.all_gather(call.caller, call.group, outputs, tensor).wait()
    return tuple(outputs)


def gather(call: Call, tensor: Any, shapes: Sequence[Shape], root: int) -> tuple[Any, ...]:
    """Return each rank's tensor on *root*, and zeros of the same *shapes* elsewhere."""
    is_root = call.group.rank == root
    outputs = [new_like(tensor, shape) if is_root else call.zeros(tensor, shape) for shape in shapes]
    calls.gather(call.caller, call.group, outputs if is_root else None, tensor, root).wait()
    return tuple(outputs)


def scatter(call: Call, parts: Sequence[Any] | None, like: Any, shape: Shape, root: int) -> Any:
    """Return this rank's place in *root*'s *parts*: a tensor like *like* of *shape*."""
    output = new_like(like, shape)
    calls.scatter(call.caller, call.group, output, parts if call.group.rank == root else None, root).wait()
    return output


def reduce_scatter(
    call: Call, tensor: Any, op: ReduceOp, factor: float, shape: Shape | None = None, output: Any = None
) -> Any:
    """Return this rank's part of all ranks' tensors combined; a part has *shape*, or as many rows as any other."""
    if output is None:
        equal = (tensor.shape[0] // call.group.size, *tensor.shape[1:]) if shape is None else shape
        output = new_like(tensor, equal)
    return call.result(calls.reduce_scatter(call.caller, call.group, output, call.steady(tensor), op, factor), output)


def reduce_scatter_parts(call: Call, parts: Sequence[Any], op: ReduceOp, factor: float, output: Any = None) -> Any:
    """Return the combination of all ranks' part for this one, in *output* where there is one."""
    if output is None:
        output = new_like(parts[call.group.rank])
    steady = [call.steady(part) for part in parts]
    return call.result(calls.reduce_scatter(call.caller, call.group, output, steady, op, factor), output)


def all_to_all(
    call: Call, tensor: Any, rows: int, output_splits: Splits, input_splits: Splits, output: Any = None
) -> Any:
    """Return the parts that the ranks have for this one, *rows* in all, in *output* where there is one."""
    if output is None:
        output = new_like(tensor, (rows, *tensor.shape[1:]))
    return call.result(
        calls.all_to_all(call.caller, call.group, output, call.steady(tensor), output_splits, input_splits),
        output,
    )


def all_to_all_parts(
    call: Call, parts: Sequence[Any], shapes: Sequence[Shape], outputs: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """Return the part that each rank has for this one, of *shapes*, in *outputs* where there are some."""
    if outputs is None:
        outputs = [new_like(parts[0], shape) for shape in shapes]
    calls.all_to_all(call.caller, call.group, list(outputs), list(parts)).wait()
    return tuple(outputs)
