"""``torch.distributed.nn.functional``: collectives that return their result, differentiable for torch's tensors.

Ranks are the world's, also in a subgroup. The gradient is that of the sum of all ranks' losses; every rank of the group has to
run backward, and gradients of tensors of other frameworks are not followed.
Deviates: the default *group* is the world at the time of the call; in torch, at the time of the import. A graph of ``torch.compile``
ends at each of these functions; torch raises RuntimeError.
See: https://docs.pytorch.org/docs/2.15/distributed.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from shim.core.engines.base import Tensor
from shim.frontends.torch._calls.arguments import root_of, splits_of
from shim.frontends.torch._calls.deprecations import deprecated
from shim.frontends.torch._calls.reduce_op import AnyReduceOp, ReduceOp, reduction_of
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._functional import differentiable
from shim.frontends.torch._functional.arguments import check_cut
from shim.frontends.torch._functional.differentiable import begin_call
from shim.frontends.torch._functional.eager_calls import Call
from shim.frontends.torch._functional.errors import functional_caller
from shim.frontends.torch._functional.headers import list_for_all, scatter_of_any_shapes, with_headers
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._groups.process_group import group as group  # torch's module has it too

__all__ = [
    "_all_gather_base",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

_BROADCAST = functional_caller("nn.functional.broadcast", output="tensor", input="tensor", root="src")
_GATHER = functional_caller("nn.functional.gather", output="tensor", input="tensor", root="dst")
_SCATTER = functional_caller("nn.functional.scatter", output="tensors", input="tensors", root="src")
_REDUCE = functional_caller("nn.functional.reduce", output="tensor", input="tensor", root="dst")
_REDUCE_SCATTER = functional_caller("nn.functional.reduce_scatter", input="input_list")
_ALL_GATHER = functional_caller("nn.functional.all_gather", output="tensor", input="tensor")
_ALL_GATHER_BASE = functional_caller("nn.functional._all_gather_base", output="output_tensor", input="input_tensor")
_ALL_TO_ALL = functional_caller("nn.functional.all_to_all", output="output_tensor_list", input="input_tensor_list")
_ALL_TO_ALL_SINGLE = functional_caller(
    "nn.functional.all_to_all_single", output_splits="output_split_sizes", input_splits="input_split_sizes"
)
_ALL_REDUCE = functional_caller("nn.functional.all_reduce", output="tensor", input="tensor")


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Any:
    """Return a copy of the *tensor* of the world's rank *src*; every rank's has its shape.

    *src* gets the sum of all gradients; the others' is zero.
    Raises: ValueError for a *src* outside *group*; warns (FutureWarning) that torch deprecates it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    caller = deprecated(_BROADCAST, "_functional_collectives.broadcast", "2.12")
    call = begin_call(caller, group_of(caller, group), [tensor])
    return differentiable.broadcast(call, tensor, root_of(caller, call.group, src, None))


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Any, ...]:
    """Return every rank's *tensor* on the world's rank *dst*, and zeros of their shapes on the others.

    Raises: ValueError for a *dst* outside *group*.
    Deviates: *dst* is a world rank in subgroups too, which torch 2.13 mixes up with the group rank; shapes may differ.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_call(_GATHER, group_of(_GATHER, group), [tensor])
    root = root_of(_GATHER, call.group, dst, None)
    return tuple(differentiable.gather(call, *with_headers(call, tensor), root))


def scatter(tensors: Sequence[Tensor] | None, src: int = 0, group: ProcessGroup | None = None) -> Any:
    """Return this rank's place in the *tensors* of the world's rank *src*; on others they are None or placeholders.

    Raises: ValueError for another number of *tensors* than ranks; RuntimeError for a placeholder of another shape.
    Deviates: *src* is a world rank in subgroups too and may be None, as torch documents; shapes may differ.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    members = group_of(_SCATTER, group)
    return scatter_of_any_shapes(_SCATTER, members, tensors, root_of(_SCATTER, members, src, None))


def reduce(tensor: Tensor, dst: int, op: AnyReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Any:
    """Return all ranks' *tensor*, all of one shape, combined by *op* on the world's rank *dst*, and zeros on the others.

    Raises: ValueError for a *dst* outside *group*, and for an *op* that the dtype has not.
    Deviates: other ranks get zeros; in torch, a copy that stops gradients. Gradients honour *op*; torch ignores it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_call(_REDUCE, group_of(_REDUCE, group), [tensor])
    kind, factor = reduction_of(_REDUCE, call.group, op, tensor)
    return differentiable.reduce(call, tensor, kind, factor, root_of(_REDUCE, call.group, dst, None))


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: AnyReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Any:
    """Combine all ranks' *input_list* by *op*, write this rank's place into *output*, of the same shape, and return that.

    Raises: ValueError for another number of tensors than ranks; warns (FutureWarning) that torch deprecates it.
    Deviates: gradients honour *op*, which torch ignores; ranks with the same extremum share its gradient equally.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    caller = deprecated(
        _REDUCE_SCATTER,
        "_functional_collectives.reduce_scatter_single",
        "2.12",
        "_functional_collectives.reduce_scatter_tensor",
    )
    members = group_of(caller, group)
    parts = list_for_all(Call(caller, members), "input", input_list)
    call = begin_call(caller, members, parts)
    call.check_tensors([output], "output")
    kind, factor = reduction_of(caller, members, op, output)
    return differentiable.reduce_scatter_parts(call, parts, kind, factor, output)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Any, ...]:
    """Return every rank's *tensor*, by group rank.

    Raises: TypeError for what is no tensor; warns (FutureWarning) that torch deprecates it.
    Deviates: shapes may differ; torch requires equal shapes.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    caller = deprecated(
        _ALL_GATHER, "_functional_collectives.all_gather_single", "2.12", "_functional_collectives.all_gather_tensor"
    )
    call = begin_call(caller, group_of(caller, group), [tensor])
    return tuple(differentiable.all_gather_parts(call, *with_headers(call, tensor)))


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None) -> Any:
    """Gather every rank's *input_tensor* into *output_tensor*, concatenated or stacked, and return that.

    Raises: ValueError for another shape.
    Deviates: its gradient works on every engine; torch has one on NCCL and XCCL only.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_call(_ALL_GATHER_BASE, group_of(_ALL_GATHER_BASE, group), [input_tensor])
    call.check_tensors([output_tensor], "output")
    return differentiable.all_gather(call, input_tensor, output_tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None
) -> tuple[Any, ...]:
    """Send tensor *j* of *input_tensor_list* to rank *j*; write what comes into *output_tensor_list*, of the same shapes, and return it.

    Raises: ValueError for another number of tensors than ranks, or another size.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    members = group_of(_ALL_TO_ALL, group)
    parts = list_for_all(Call(_ALL_TO_ALL, members), "input", input_tensor_list)
    call = begin_call(_ALL_TO_ALL, members, parts)
    written = list_for_all(call, "output", output_tensor_list)
    call.check_tensors(written, "output")
    return tuple(differentiable.all_to_all_parts(call, parts, written))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Any:
    """Send each rank its rows of *input*, write those that come into *output* and return that.

    *output_split_sizes* and *input_split_sizes* are the rows of each rank's part; None means equal parts.
    Raises: ValueError for sizes that do not add up; warns (FutureWarning) that torch deprecates it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    caller = deprecated(_ALL_TO_ALL_SINGLE, "_functional_collectives.all_to_all_single", "2.12")
    call = begin_call(caller, group_of(caller, group), [input])
    call.check_tensors([output], "output")
    check_cut(call, "output", output)
    check_cut(call, "input", input)
    into = splits_of(caller, call.group, "output_splits", output_split_sizes)
    cuts = splits_of(caller, call.group, "input_splits", input_split_sizes)
    return differentiable.all_to_all(call, input, cast(Any, output).shape[0], into, cuts, output)


def all_reduce(tensor: Tensor, op: AnyReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Any:
    """Return all ranks' *tensor*, all of one shape, combined by *op*.

    Raises: ValueError for an *op* that the dtype has not; warns (FutureWarning) that torch deprecates it.
    Deviates: the gradients of MAX, MIN (shared equally by the ranks that hold it) and PRODUCT are the mathematical ones.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    caller = deprecated(_ALL_REDUCE, "_functional_collectives.all_reduce", "2.12")
    call = begin_call(caller, group_of(caller, group), [tensor])
    kind, factor = reduction_of(caller, call.group, op, tensor)
    return differentiable.all_reduce(call, tensor, kind, factor)


between_graphs(globals(), __all__)
