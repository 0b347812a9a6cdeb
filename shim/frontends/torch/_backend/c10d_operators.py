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

from shim.core.calls import tell
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
    "gather_into_tensor_": ("gather_single", "GatherOptions"),
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
_MESSAGES = ("send", "recv", "recv_anysource")  # whose peer may come later
_LEFT_OUT = ("process_group", "sparse_indices", "tensor")  # the last tells a barrier of its device
_registered: list[str] = []
_registering = threading.Lock()


class SeenCall(AbstractContextManager["SeenCall"]):
    """A call of *group*'s *method* with *arguments* and *named* that is made within it through torch's own: modes, tracers and hooks see it.

    The two are given back as torch's own method takes them. It takes neither other frameworks' tensors nor lists that are none: that is no
    error here, and nothing has been called. What a mode or hook raises before the call is told to the other ranks, which would wait.
    """

    def __init__(self, group: Any, method: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        self.group, self.method = group, method
        ops = [getattr(argument, "reduceOp", argument) for argument in (*arguments, *named.values())]
        self.op = next((op for op in ops if is_op(op)), None)
        self.arguments = [_as_torchs(argument) for argument in arguments]
        self.named = {name: _as_torchs(argument) for name, argument in named.items()}
        self.is_begun = False  # whether the engine was given it
        self.works: list[Any] = []  # that came of it

    def __enter__(self) -> SeenCall:
        register()
        self._outer = getattr(_thread, "call", None)
        _thread.call = self
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        _thread.call = self._outer
        if self.is_begun or error is None:
            return False
        if isinstance(error, TypeError) and "incompatible function arguments" in str(error):
            return True
        if type(error) is RuntimeError:  # as of torch's NaN check, which does not say on which rank
            error.args = (f"{error} ({self.group.core.label(self.group.core.rank, of_size=True)})",)
        if self.method not in _MESSAGES:
            tell(self.group.core, f"ProcessGroup.{self.method}: {error!r}")
        return False


def is_seen() -> bool:
    """Tell whether a call that modes see is being made on this thread."""
    return getattr(_thread, "call", None) is not None


def register() -> None:
    """Have the operators work on groups of the engine's, from the first call on."""
    if len(_registered) == len(_OPERATORS):
        return
    with _registering:
        for name, (method, options) in list(_OPERATORS.items())[len(_registered) :]:
            operator = getattr(torch.ops.c10d, name, None)  # some are newer than this torch
            if operator is not None:
                kernel = _kernel(operator.default, method, options)
                _LIBRARY.impl(name, kernel, _PLACE.name, with_keyset=True)
            _registered.append(name)


def _kernel(operator: Any, method: str, options: str | None) -> Callable[..., Any]:
    names = [argument.name for argument in operator._schema.arguments]
    place = names.index("process_group")
    returns_tensors = len(operator._schema.returns) > 1

    def kernel(keys: Any, *given: Any) -> Any:
        group = _c10d.ProcessGroup.unbox(given[place])
        # Meta tensors have nothing to move. A group's hooks are called by torch's kernels, which come back to its backend.
        is_ours = hasattr(group, "carry_out") and not keys.has(_core.DispatchKey.Meta)
        if not is_ours or (group.hooks and method != "gather_single"):
            return operator.redispatch(keys & _AFTER, *given)
        arguments = _arguments(dict(zip(names, given, strict=False)), options)
        work = _gathered(group, *arguments) if group.hooks else carried_out(group.carry_out, method, *arguments)
        boxed = _c10d._create_work_from_future(work.get_future()).boxed()
        return (given[0], boxed) if returns_tensors else boxed

    return kernel


def carried_out(carry_out: Callable[..., Any], *arguments: Any) -> Any:
    """Return the work that *carry_out* gives, of the call that is being seen, or else of a graph: it has ended then."""
    call = getattr(_thread, "call", None)
    if call is not None:
        call.is_begun = True
    work = carry_out(*arguments)
    if call is None:  # a graph's, which waits for nothing
        work.wait()
    else:
        call.works.append(work)
    return work


def _gathered(group: Any, output: Any, input: Any, opts: Any) -> Any:
    """Gather into one tensor by a call with a list, past the hooks: torch's kernel for one tensor asks no backend in Python."""
    is_root = opts.rootRank == group.rank()
    if is_root and not (output.is_contiguous() and output.numel() == group.size() * input.numel()):
        return carried_out(group.carry_out, "gather_single", output, input, opts)  # which tells what is wrong
    parts = [list(output.view(group.size(), *input.shape))] if is_root else []
    return carried_out(group.gather, parts, [input], opts)


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
