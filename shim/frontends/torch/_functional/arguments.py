"""What torch's functional collectives require of their arguments, beyond what the engine checks."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from shim.core.engines.base import Splits
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, RankError, ShimError
from shim.frontends.torch._calls.reduce_op import is_op, reduction_of
from shim.frontends.torch._compiled_graphs import in_graphs
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError
from shim.frontends.torch._functional.eager_calls import Call
from shim.frontends.torch._functional.errors import DimensionError, ReduceOpError

_OPS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "product": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
    "band": ReduceOp.BAND,
    "bor": ReduceOp.BOR,
    "bxor": ReduceOp.BXOR,
}


def op_of(call: Call, op: Any, tensor: Any) -> tuple[ReduceOp, float]:
    """Return the reduce op *op* for *tensor*, a ReduceOp or torch's name for one in letters of any case, and what it multiplies by."""
    if is_op(op):
        return reduction_of(call.caller, call.group, op, tensor)
    if not isinstance(op, str):
        call.refuse(ArgumentTypeError(f"{{op}} must be a ReduceOp or one of {', '.join(_OPS)}, got {op!r}"))
    if op.lower() not in _OPS:
        call.refuse(ReduceOpError(f"{{op}} must be one of {', '.join(_OPS)}, got {op!r}"))
    return _OPS[op.lower()], 1.0


def resized(call: Call, role: str, tensor: Any, dimension: Any, is_gathered: bool) -> tuple[int, ...]:
    """Return *tensor*'s shape after gathering along *dimension*, or after cutting it there into equal parts."""
    if is_gathered:
        number = dimension_of(call, role, tensor, dimension)
        shape = list(tensor.shape) or [1]
        shape[number] *= call.group.size
    else:
        number = cut_dimension(call, role, tensor, dimension)
        shape = list(tensor.shape)
        shape[number] //= call.group.size
    return tuple(shape)


def dimension_of(call: Call, role: str, tensor: Any, dimension: Any) -> int:
    """Return *dimension* of *tensor* counted from the front; a tensor without any counts as one of one row."""
    count = max(len(tensor.shape), 1)
    try:
        number = index(dimension)
    except TypeError:
        call.refuse(ArgumentTypeError(f"{{{role}}} must be an integer, got {dimension!r}"))
    if not -count <= number < count:
        call.refuse(
            DimensionError(f"{{{role}}} must be in {-count}..{count - 1} for shape {tuple(tensor.shape)}, got {number}")
        )
    return number % count


def cut_dimension(call: Call, role: str, tensor: Any, dimension: Any) -> int:
    """Return *dimension* of *tensor* counted from the front, along which it must be cut into equal parts."""
    check_cut(call, "input", tensor, DimensionError)
    number = dimension_of(call, role, tensor, dimension)
    if tensor.shape[number] % call.group.size:
        call.refuse(
            ArgumentAssertionError(
                f"{{input}} must have a multiple of {call.group.size} elements along dimension {number}, "
                f"got shape {tuple(tensor.shape)}"
            )
        )
    return number


def check_cut(call: Call, role: str, tensor: Any, error: type[ArgumentError] = ArgumentError) -> None:
    """Refuse a *tensor* without a dimension to cut."""
    if not len(tensor.shape):
        call.refuse(error(f"{{{role}}} must have a dimension to cut, got one of shape ()"))


def splits_of(call: Call, tensor: Any, output_sizes: Any, input_sizes: Any) -> tuple[int, Splits, Splits]:
    """Return how many rows come, and the split sizes; None for both means equal parts, None for one is an error."""
    return _checked_splits(call, tensor, output_sizes, input_sizes)


def _checked_splits(call: Call, tensor: Any, output_sizes: Any, input_sizes: Any) -> tuple[int, Splits, Splits]:
    check_cut(call, "input", tensor)
    if output_sizes is None and input_sizes is None:
        if tensor.shape[0] % call.group.size:
            call.refuse(
                ArgumentError(
                    f"{{input}} must have a multiple of {call.group.size} rows, got shape {tuple(tensor.shape)}\n"
                    "Pass split sizes for unequal parts."
                )
            )
        return tensor.shape[0], None, None
    output, input = _sizes(call, "output_splits", output_sizes), _sizes(call, "input_splits", input_sizes)
    mine = call.group.rank
    if output[mine] != input[mine]:
        call.refuse(
            ArgumentError(
                f"{{output_splits}} and {{input_splits}} must be the same for the rank itself, "
                f"got {output[mine]} and {input[mine]} at {mine}"
            )
        )
    return sum(output), output, input


def _splits_in_graph(call: Call, tensor: Any, output_sizes: Any, input_sizes: Any) -> tuple[int, Splits, Splits]:
    """Return what ``splits_of`` does, of sizes that the graph may not know before it runs; the engine checks them then."""
    if type(output_sizes) is not list or type(input_sizes) is not list:
        return _checked_splits(call, tensor, output_sizes, input_sizes)
    return sum(output_sizes), output_sizes, input_sizes


in_graphs(splits_of, _splits_in_graph)


def _sizes(call: Call, role: str, sizes: Any) -> list[int]:
    try:
        found = [index(size) for size in sizes]
    except TypeError:
        call.refuse(
            ArgumentAssertionError(
                f"{{{role}}} must be a list of integers, as the other split sizes are, got {sizes!r}"
            )
        )
    if len(found) != call.group.size or min(found) < 0:
        call.refuse(ArgumentError(f"{{{role}}} must be {call.group.size} sizes that are not negative, got {found}"))
    return found


def permuted_splits(call: Call, tensor: Any, src_dst: Any) -> tuple[int, Splits, Splits]:
    """Return how many rows come, and the split sizes with which rank *m* sends all of its *tensor* to ``src_dst[m]``."""
    ranks = range(call.group.size)
    if not isinstance(src_dst, Sequence) or len(src_dst) != len(ranks) or any(dst not in ranks for dst in src_dst):
        call.refuse(ArgumentError(f"src_dst must name a rank of 0..{len(ranks) - 1} for each of them, got {src_dst!r}"))
    rows = tensor.shape[0]
    mine = call.group.rank
    cuts = [rows if dst == src_dst[mine] else 0 for dst in ranks]
    into = [rows if src_dst[src] == mine else 0 for src in ranks]
    return sum(into), into, cuts


def group_rank_of(call: Call, world_rank: Any, group_rank: int = -1) -> int:
    """Return the group rank of another rank, named by *world_rank*, or by *group_rank* when that is not -1."""
    try:
        if group_rank != -1 and world_rank is not None:
            raise ArgumentError(f"{{root}} and group_{{root}} must not both be given, got {world_rank}, {group_rank}")
        if group_rank != -1:
            call.group.world_rank(group_rank)
            return group_rank
        if world_rank is None:
            raise ArgumentTypeError("{root} or group_{root} must be given")
        return call.group.group_rank(index(world_rank))
    except ShimError as error:
        raise call.caller.explain(error, call.group) from None
    except TypeError:
        raise call.caller.explain(
            ArgumentTypeError(f"{{root}} must be an integer, got {world_rank!r}"), call.group
        ) from None


def check_member_rank(call: Call, rank: Any) -> int:
    """Return the group rank *rank* of the root."""
    try:
        call.group.world_rank(index(rank))
    except TypeError:
        call.refuse(ArgumentTypeError(f"{{root}} must be an integer, got {rank!r}"))
    except RankError as error:
        call.refuse(error)
    return index(rank)


def check_list(call: Call, role: str, tensors: Any) -> list[Any]:
    """Return *tensors*, which must be a list or a tuple, as a list."""
    if not isinstance(tensors, (list, tuple)):
        call.refuse(ArgumentTypeError(f"{{{role}}} must be a list of tensors, got a {type(tensors).__qualname__}"))
    call.check_tensors(tensors, role)
    return list(tensors)


def check_same_shape(call: Call, output: Any, shape: Sequence[int], error: type[ArgumentError] = ArgumentError) -> None:
    """Refuse an *output* that is no tensor of *shape*: copying into it might repeat elements."""
    call.check_tensors([output], "output")
    if tuple(output.shape) != tuple(shape):
        call.refuse(error(f"{{output}} must have shape {tuple(shape)}, got {tuple(output.shape)}"))


def check_synchronous(call: Call, async_op: Any) -> None:
    """Refuse *async_op*, which torch does not allow where a functional collective stands for one in place."""
    if async_op:
        call.refuse(ArgumentAssertionError(f"async_op must be False, got {async_op!r}"))
