"""Which overload of a method of ProcessGroup a call means, and the tensors and options in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import ArgumentError, ShimError
from shim.frontends.torch._calls.reduce_op import ReduceOp
from shim.frontends.torch._errors import ArgumentTypeError
from shim.frontends.torch._methods.call_options import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    CallOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    is_torchs_own,
)

Form = Callable[..., Any]  # one overload: None when the arguments are not of its kinds, else what the call needs
_Kind = TypeVar("_Kind", bound=CallOptions)


def read(
    caller: Caller, members: ProcessGroup, forms: Sequence[Form], arguments: Sequence[Any], named: Mapping[str, Any]
) -> Any:
    """Return what the first of *forms* that takes *arguments* and *named* makes of them."""
    misfit: TypeError | None = None
    try:
        for form in forms:
            try:
                found = form(*arguments, **named)
            except TypeError as error:
                if isinstance(error, ShimError):  # what the arguments are, and not how many there are
                    raise
                misfit = error
                continue
            if found is not None:
                return found
        known = " or ".join(str(inspect.signature(form)) for form in forms)
        raise ArgumentTypeError(f"arguments must be {known}, got {_told(arguments, named)}") from misfit
    except ShimError as error:
        calls.refuse(caller, members, error)


def checked(caller: Caller, members: ProcessGroup, kind: type[_Kind], opts: Any) -> _Kind:
    """Return *opts*, which must be of *kind*; the defaults for None."""
    if not _given(opts, kind):
        calls.refuse(caller, members, ArgumentTypeError(f"opts must be {kind.__name__}, got {opts!r}"))
    return kind() if opts is None else opts


def only(tensors: Any) -> Any:
    """Return the one tensor, or list of tensors, in the list *tensors*: a rank gives one to a call."""
    if len(tensors) != 1:
        raise ArgumentError(f"the lists must hold one tensor, or list of tensors, for this rank, got {len(tensors)}")
    return tensors[0]


def _told(arguments: Sequence[Any], named: Mapping[str, Any]) -> str:
    kinds = [type(argument).__name__ for argument in arguments]
    return ", ".join([*kinds, *(f"{name}={type(value).__name__}" for name, value in named.items())]) or "none"


def _are_lists(*things: Any) -> bool:
    for thing in things:  # noqa: SIM110  # all() with a generator would be a third of a small call's time
        if not isinstance(thing, (list, tuple)):
            return False
    return True


def _options(kind: type[_Kind], timeout: timedelta | None, **fields: Any) -> _Kind:
    made = kind()
    if timeout is not None:
        fields["timeout"] = timeout
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _given(opts: Any, kind: type[CallOptions]) -> bool:
    return opts is None or isinstance(opts, kind) or is_torchs_own(kind, type(opts))


def _allreduce_opts(tensors: Any, opts: Any = None) -> Any:
    fits = _are_lists(tensors) and _given(opts, AllreduceOptions)
    return (only(tensors), opts or AllreduceOptions()) if fits else None


def _allreduce_op(tensors: Any, op: Any = ReduceOp.SUM, timeout: Any = None) -> Any:
    return (only(tensors), _options(AllreduceOptions, timeout, reduceOp=op)) if _are_lists(tensors) else None


def _allreduce_tensor(tensor: Any, op: Any = ReduceOp.SUM, timeout: Any = None) -> Any:
    return None if _are_lists(tensor) else (tensor, _options(AllreduceOptions, timeout, reduceOp=op))


def _broadcast_opts(tensors: Any, opts: Any = None) -> Any:
    fits = _are_lists(tensors) and _given(opts, BroadcastOptions)
    return (only(tensors), opts or BroadcastOptions()) if fits else None


def _broadcast_root(tensor: Any, root: Any, timeout: Any = None) -> Any:
    return None if _are_lists(tensor) else (tensor, _options(BroadcastOptions, timeout, rootRank=root))


def _allgather_opts(output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
    fits = _are_lists(output_tensors, input_tensors) and _given(opts, AllgatherOptions)
    return (only(output_tensors), only(input_tensors), opts or AllgatherOptions()) if fits else None


def _allgather_tensor(output_tensors: Any, input_tensor: Any, timeout: Any = None) -> Any:
    fits = _are_lists(output_tensors) and not _are_lists(input_tensor)
    return (output_tensors, input_tensor, _options(AllgatherOptions, timeout)) if fits else None


def _gather_opts(output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
    if not (_are_lists(output_tensors, input_tensors) and _given(opts, GatherOptions)):
        return None
    return (only(output_tensors) if output_tensors else None), only(input_tensors), opts or GatherOptions()


def _gather_root(output_tensors: Any, input_tensor: Any, root: Any, timeout: Any = None) -> Any:
    fits = _are_lists(output_tensors) and not _are_lists(input_tensor)
    return (output_tensors, input_tensor, _options(GatherOptions, timeout, rootRank=root)) if fits else None


def _scatter_opts(output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
    if not (_are_lists(output_tensors, input_tensors) and _given(opts, ScatterOptions)):
        return None
    return only(output_tensors), (only(input_tensors) if input_tensors else None), opts or ScatterOptions()


def _scatter_root(output_tensor: Any, input_tensors: Any, root: Any, timeout: Any = None) -> Any:
    fits = _are_lists(input_tensors) and not _are_lists(output_tensor)
    return (output_tensor, input_tensors, _options(ScatterOptions, timeout, rootRank=root)) if fits else None


def _reduce_opts(tensors: Any, opts: Any = None) -> Any:
    fits = _are_lists(tensors) and _given(opts, ReduceOptions)
    return (only(tensors), opts or ReduceOptions()) if fits else None


def _reduce_root(tensor: Any, root: Any, op: Any = ReduceOp.SUM, timeout: Any = None) -> Any:
    return None if _are_lists(tensor) else (tensor, _options(ReduceOptions, timeout, rootRank=root, reduceOp=op))


def _reduce_scatter_opts(output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
    fits = _are_lists(output_tensors, input_tensors) and _given(opts, ReduceScatterOptions)
    return (only(output_tensors), only(input_tensors), opts or ReduceScatterOptions()) if fits else None


def _reduce_scatter_op(output: Any, input: Any, op: Any = ReduceOp.SUM, timeout: Any = None) -> Any:
    fits = _are_lists(input) and not _are_lists(output)
    return (output, input, _options(ReduceScatterOptions, timeout, reduceOp=op)) if fits else None


def _alltoall_opts(output: Any, input: Any, output_split_sizes: Any, input_split_sizes: Any, opts: Any = None) -> Any:
    fits = _are_lists(output_split_sizes, input_split_sizes) and _given(opts, AllToAllOptions)
    return (output, input, output_split_sizes, input_split_sizes, opts or AllToAllOptions()) if fits else None


def _alltoall_timeout(
    output: Any, input: Any, output_split_sizes: Any, input_split_sizes: Any, timeout: Any = None
) -> Any:
    fits = _are_lists(output_split_sizes, input_split_sizes)
    made = _options(AllToAllOptions, timeout)
    return (output, input, output_split_sizes, input_split_sizes, made) if fits else None


def _barrier_opts(opts: Any = None) -> Any:
    return (opts or BarrierOptions(),) if _given(opts, BarrierOptions) else None


def _barrier_timeout(timeout: Any = None) -> Any:
    return (_options(BarrierOptions, timeout),)


ALLREDUCE: Sequence[Form] = (_allreduce_opts, _allreduce_op, _allreduce_tensor)
BROADCAST: Sequence[Form] = (_broadcast_opts, _broadcast_root)
ALLGATHER: Sequence[Form] = (_allgather_opts, _allgather_tensor)
GATHER: Sequence[Form] = (_gather_opts, _gather_root)
SCATTER: Sequence[Form] = (_scatter_opts, _scatter_root)
REDUCE: Sequence[Form] = (_reduce_opts, _reduce_root)
REDUCE_SCATTER: Sequence[Form] = (_reduce_scatter_opts, _reduce_scatter_op)
ALLTOALL_BASE: Sequence[Form] = (_alltoall_opts, _alltoall_timeout)
BARRIER: Sequence[Form] = (_barrier_opts, _barrier_timeout)
