"""torch's own operators of collectives, ``torch.ops.c10d``, on groups of the engine's: what modes, tracers and graphs see of a call.

torch's kernels ask a group for a backend written in C++. Ours take the place before these for groups of the engine's, and leave torch's in
place for others. They are registered with the first group that is put into an operator: no other call passes them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import torch

from shim.errors import UnsupportedError
from shim.frontends.torch._calls.reduce_op import ReduceOp, is_op
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._methods import call_options
from shim.frontends.torch._methods.call_options import CallOptions

_core: Any = torch._C
_c10d: Any = _core._distributed_c10d  # whose names are no public ones
_PLACE: Any = _core.DispatchKey.BackendSelect  # below modes, above the kernels of devices; torch has none here itself
_AFTER: Any = _core._dispatch_keyset_full_after(_PLACE)
_library: Any = torch.library  # which has no types
_LIBRARY: Any = _library.Library("c10d", "IMPL")
_thread = threading.local()  # its call: the one that is being seen on this thread

# The method of a group that each operator stands for, and the class of its options.
_OPERATORS: Mapping[str, tuple[str, str | None]] = {
    "_allgather_base_": ("_allgather_base", "AllgatherOptions"),
    "_reduce_scatter_base_": ("_reduce_scatter_base", "ReduceScatterOptions"),
    "allgather_": ("allgather", "AllgatherOptions"),
    "allgather_coalesced_": ("allgather_coalesced", "AllgatherOptions"),
    "allgather_into_tensor_coalesced_": ("allgather_into_tensor_coalesced", "AllgatherOptions"),
    "allreduce_": ("allreduce", "AllreduceOptions"),
    "allreduce_coalesced_": ("allreduce_coalesced", "AllreduceCoalescedOptions"),
    "alltoall_": ("alltoall", "AllToAllOptions"),
    "alltoall_base_": ("alltoall_base", "AllToAllOptions"),
    "barrier": ("barrier", "BarrierOptions"),
    "broadcast_": ("broadcast", "BroadcastOptions"),
    "gather_": ("gather", "GatherOptions"),
    "recv_": ("recv", None),
    "recv_any_source_": ("recv_anysource", None),
    "reduce_": ("reduce", "ReduceOptions"),
    "reduce_scatter_": ("reduce_scatter", "ReduceScatterOptions"),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter_tensor_coalesced", "ReduceScatterOptions"),
    "scatter_": ("scatter", "ScatterOptions"),
    "send": ("send", None),
}
_FIELDS = {
    "async_op": "asyncOp",
    "device_ids": "device_ids",
    "reduce_op": "reduceOp",
    "root_rank": "rootRank",
    "root_tensor": "rootTensor",
    "timeout": "timeout",
}
_LEFT_OUT = ("process_group", "sparse_indices", "tensor")  # the last tells a barrier of its device
_registered: list[str] = []
_registering = threading.Lock()


class SeenCall(AbstractContextManager["SeenCall"]):
    """A call of a method with *arguments* and *named* that is made within it through torch's own: modes and tracers see its operator.

    The two are given back as torch's own method takes them. It takes neither other frameworks' tensors nor lists that are none: that is no
    error here, and nothing has been called.
    """

    def __init__(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        ops = [getattr(argument, "reduceOp", argument) for argument in (*arguments, *named.values())]
        self.op = next((op for op in ops if is_op(op)), None)
        self.arguments = [_as_torchs(argument) for argument in arguments]
        self.named = {name: _as_torchs(argument) for name, argument in named.items()}
        self.works: list[Any] = []  # that came of it

    def __enter__(self) -> SeenCall:
        register()
        self._outer = getattr(_thread, "call", None)
        _thread.call = self
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        _thread.call = self._outer
        return not self.works and isinstance(error, TypeError) and "incompatible function arguments" in str(error)


def is_seen() -> bool:
    """Tell whether a call that modes see is being made on this thread."""
    return getattr(_thread, "call", None) is not None


def register() -> None:
    """Have the operators work on groups of the engine's, from the first call on."""
    if len(_registered) == len(_OPERATORS):
        return
    with _registering:
        for name, (method, options) in list(_OPERATORS.items())[len(_registered) :]:
            kernel = _kernel(getattr(torch.ops.c10d, name).default, method, options)
            _LIBRARY.impl(name, kernel, _PLACE.name, with_keyset=True)
            _registered.append(name)


def _kernel(operator: Any, method: str, options: str | None) -> Callable[..., Any]:
    names = [argument.name for argument in operator._schema.arguments]
    place = names.index("process_group")
    returns_tensors = len(operator._schema.returns) > 1

    def kernel(keys: Any, *given: Any) -> Any:
        group = _c10d.ProcessGroup.unbox(given[place])
        if not hasattr(group, "carry_out") or keys.has(_core.DispatchKey.Meta):  # meta tensors have nothing to move
            return operator.redispatch(keys & _AFTER, *given)
        work = group.carry_out(method, *_arguments(dict(zip(names, given, strict=False)), options))
        call = getattr(_thread, "call", None)
        if call is None:  # a graph's, which waits for nothing
            work.wait()
        else:
            call.works.append(work)
        boxed = _c10d._create_work_from_future(work.get_future()).boxed()
        return (given[0], boxed) if returns_tensors else boxed

    return kernel


def _arguments(given: Mapping[str, Any], options: str | None) -> list[Any]:
    """Return what the method takes for what an operator is *given*."""
    made = None if options is None else getattr(call_options, options)()
    arguments = []
    for name, value in given.items():
        if made is not None and name in _FIELDS:
            setattr(made, _FIELDS[name], _field(name, value))
        elif name not in _LEFT_OUT:
            arguments.append(value)
    return arguments if made is None else [*arguments, made]


def _field(name: str, value: Any) -> Any:
    if name == "timeout":
        return timedelta(milliseconds=value)
    return _op(value) if name == "reduce_op" else value


def _op(boxed: Any) -> Any:
    """Return the reduce op in *boxed*, which hides its factor; older versions of torch hide all of it."""
    call = getattr(_thread, "call", None)
    if call is not None and call.op is not None:
        return call.op
    kind = ReduceOp.RedOpType(boxed.op()) if hasattr(boxed, "op") else ReduceOp.PREMUL_SUM
    if kind is ReduceOp.PREMUL_SUM:
        raise torch_function("ProcessGroup").explain(
            UnsupportedError(
                "a graph that torch has traced does not tell the factor of PREMUL_SUM\nMultiply before a SUM."
            )
        )
    return kind


def _as_torchs(value: Any) -> Any:
    """Return *value*, with torch's own reduce op or options in place of the frontend's."""
    if isinstance(value, ReduceOp.RedOpType):
        return getattr(_c10d.ReduceOp, value.name)
    if isinstance(value, ReduceOp):
        return (
            _as_torchs(value.op) if value.op is not ReduceOp.PREMUL_SUM else _c10d._make_nccl_premul_sum(value.factor)
        )
    if not isinstance(value, CallOptions):
        return value
    made = getattr(_c10d, type(value).__name__)()
    for kind in type(value).__mro__:
        for field in getattr(kind, "__slots__", ()):
            if getattr(value, field) is not None:  # no device
                setattr(made, field, _as_torchs(getattr(value, field)))
    return made
