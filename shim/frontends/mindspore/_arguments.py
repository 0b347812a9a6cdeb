"""What MindSpore's functions ask of their arguments.

The engine refuses objects that are no tensors and sizes that do not fit; here is what only MindSpore asks. Once the
group is known, a refusal is told to the other ranks too, who are waiting in the same collective.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import Reader, reader_for
from shim.errors import RankError, ShimError, TensorError, UnsupportedError
from shim.frontends.mindspore._errors import ArgumentTypeError, ForeignRankError
from shim.frontends.mindspore._groups.group_names import FRONTEND, known_group
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS

# Asked for the error that it raises for what is no tensor. It keeps the types alive, as the engine does.
_known_reader: Callable[[type], Reader] = cache(reader_for)


def group_of(caller: Caller, name: str | None) -> ProcessGroup:
    """Return the process group called *name* for a call that communicates."""
    refuse_tracing(caller)
    return known_group(caller, name)


def group_for(caller: Caller, name: str | None, async_op: object) -> ProcessGroup:
    """Return the process group called *name* for a collective, whose *async_op* must be a bool."""
    refuse_tracing(caller)
    group = (name is None and groups.world_of(FRONTEND)) or known_group(caller, name)  # without its frame: 45 ns
    if async_op is not False and async_op is not True:
        calls.refuse(caller, group, ArgumentTypeError(f"async_op must be a bool, got {type(async_op).__name__}"))
    return group


def refuse_tracing(caller: Caller) -> None:
    """Refuse to be traced by ``mindspore.jit(capture_mode="trace")``.

    It keeps the tensors of the first call as constants: the next call would not communicate, and the gradient be zero.
    """
    module = sys.modules.get("mindspore.graph.jit_context")
    if module is not None and module.jit_context():
        raise caller.explain(
            UnsupportedError(
                "cannot be traced by mindspore.jit(capture_mode='trace')\n"
                "Leave the call out of the traced function. The primitives of mindspore.ops can be compiled with "
                "capture_mode='ast'."
            )
        )


def one_tensor(caller: Caller, group: ProcessGroup, role: str, tensor: Any) -> Any:
    """Return *tensor*, which must not be a list of them."""
    if isinstance(tensor, (list, tuple)):
        calls.refuse(caller, group, TensorError(f"{{{role}}} must be a tensor, got a {type(tensor).__name__}"))
    return tensor


def tensor_list(caller: Caller, group: ProcessGroup, role: str, tensors: Any) -> Sequence[Any]:
    """Return *tensors*, which must be a list or tuple."""
    if not isinstance(tensors, (list, tuple)):
        calls.refuse(
            caller, group, TensorError(f"{{{role}}} must be a list of tensors, got a {type(tensors).__name__}")
        )
    return tensors


def full_list(caller: Caller, group: ProcessGroup, role: str, tensors: Any) -> Sequence[Any]:
    """Return *tensors*, which must be a list or tuple of one tensor for each rank."""
    listed = tensor_list(caller, group, role, tensors)
    if len(listed) != group.size:
        wanted = f"{{{role}}} must have a tensor for each of {group.size} ranks, got {len(listed)}"
        calls.refuse(caller, group, ArgumentTypeError(wanted))
    return listed


def alike(caller: Caller, group: ProcessGroup, role: str, tensors: Sequence[Any]) -> Sequence[Any]:
    """Return *tensors*, which must be tensors of one dtype and shape."""
    for tensor in tensors:
        try:
            _known_reader(type(tensor))
        except TensorError as error:
            calls.refuse(caller, group, TensorError(str(error).replace("{role}", f"{{{role}}}")))
        first = tensors[0]
        if tensor is not first and not (_has_dtype_of(tensor, first) and _shape_of(tensor) == _shape_of(first)):
            forms = " and ".join(f"{_dtype_of(one)} {_shape_of(one)}" for one in (first, tensor))
            wanted = f"{{{role}}} must have tensors of one dtype and shape, got {forms}"
            calls.refuse(caller, group, ArgumentTypeError(wanted))
    return tensors


def of_one_dtype(caller: Caller, group: ProcessGroup, role: str, tensors: Any) -> Sequence[Any]:
    """Return *tensors*, which must be a list or tuple of tensors of one dtype."""
    listed = tensor_list(caller, group, role, tensors)
    for tensor in listed:
        if not _has_dtype_of(tensor, listed[0]):
            wanted = f"{{{role}}} must have tensors of one dtype, got {_dtype_of(listed[0])} and {_dtype_of(tensor)}"
            calls.refuse(caller, group, ArgumentTypeError(wanted))
    return listed


def _has_dtype_of(tensor: Any, other: Any) -> bool:
    """Tell whether two tensors are of one dtype; those of one class are soon compared, names take long to make."""
    if type(tensor) is type(other):
        return bool(getattr(tensor, "dtype", None) == getattr(other, "dtype", None))
    return _dtype_of(tensor) == _dtype_of(other)


def _dtype_of(tensor: Any) -> str:
    """Return the dtype, written alike for the tensors of all frameworks."""
    return str(getattr(tensor, "dtype", "")).rpartition(".")[2].lower().replace("_", "")


def _shape_of(tensor: Any) -> tuple[int, ...]:
    return tuple(getattr(tensor, "shape", ()))


def reduce_op(caller: Caller, group: ProcessGroup, op: str, among: Sequence[str] = tuple(REDUCE_OPS)) -> ReduceOp:
    """Return the engine's reduce op for MindSpore's string, which must be *among* those that the function takes."""
    if not isinstance(op, str) or op not in among:
        calls.refuse(caller, group, ArgumentTypeError(f"{{op}} must be one of {', '.join(among)}, got {op!r}"))
    return REDUCE_OPS[op]


def root_of(caller: Caller, group: ProcessGroup, rank: int) -> int:
    """Return the rank in *group* of the world's *rank*, with which every rank calls the same collective."""
    try:
        return _group_rank(group, "root", rank)
    except ShimError as error:
        calls.refuse(caller, group, error)


def peer_of(caller: Caller, group: ProcessGroup, rank: int) -> int:
    """Return the rank in *group* of the world's *rank*, which is another than the calling one."""
    peer = peer_in(caller, group, rank)
    if peer == group.rank:
        raise caller.explain(RankError(f"{{peer}} must be another rank than the calling one, got {rank}"), group)
    return peer


def peer_in(caller: Caller, group: ProcessGroup, rank: int) -> int:
    """Return the rank in *group* of the world's *rank*."""
    try:
        return _group_rank(group, "peer", rank)
    except ShimError as error:
        raise caller.explain(error, group) from None


def _group_rank(group: ProcessGroup, role: str, rank: int) -> int:
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise ArgumentTypeError(f"{{{role}}} must be an int, got {type(rank).__name__}")
    if rank not in group.ranks:
        raise ForeignRankError(f"{{{role}}} must be one of the group's ranks {list(group.ranks)}, got {rank}")
    return group.ranks.index(rank)


def tag_of(caller: Caller, group: ProcessGroup, tag: int) -> int:
    """Return *tag*, which must be an int."""
    if not isinstance(tag, int) or isinstance(tag, bool):
        raise caller.explain(ArgumentTypeError(f"tag must be an int, got {type(tag).__name__}"), group)
    return tag


def splits(sizes: Sequence[int] | None) -> Sequence[int] | None:
    """Return split sizes; an empty list means equal parts in MindSpore, as None does."""
    return sizes or None
