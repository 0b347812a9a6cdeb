"""The layer on a group's engine that calls the hooks of the group: before and after each call, and when one ends the group."""

from __future__ import annotations

import itertools
import logging
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from shim._native import tensor_key
from shim.core import groups, work
from shim.core.calls import TOLD
from shim.core.engines.base import Engine
from shim.core.engines.layer import CallLayer
from shim.core.work import ENDED, WorkLayer, mover_of
from shim.errors import CollectiveTimeoutError, DeviceTensorError, EngineError
from shim.frontends.torch._calls.work import Work
from shim.frontends.torch._errors import torch_function


class HookOpName(Enum):
    """What is called, under torch's numbers."""

    SEND = 0
    RECV = 1
    BROADCAST = 2
    ALLREDUCE = 3
    REDUCE = 4
    ALLGATHER = 5
    REDUCE_SCATTER = 6
    ALLTOALL = 7
    BARRIER = 8
    SCATTER = 9
    GATHER = 10
    SPLIT = 11
    NEW_WINDOW = 12
    ALLREDUCE_COALESCED = 13
    ALLGATHER_BASE = 14
    ALLGATHER_COALESCED = 15
    ALLGATHER_INTO_TENSOR_COALESCED = 16
    REDUCE_SCATTER_BASE = 17
    REDUCE_SCATTER_TENSOR_COALESCED = 18
    ALLTOALL_BASE = 19
    UNKNOWN = 20


@dataclass(frozen=True)
class PreHookArgs:
    """What a call is given: *root* is a group rank, the peer of a message, or -1; in place, tensors are inputs alone."""

    name: HookOpName
    async_op: bool
    input_tensors: list[Any]
    output_tensors: list[Any]
    root: int
    op_id: int


@dataclass(frozen=True)
class PostHookArgs:
    """What has become of the call with *op_id*: its *work* has begun, or ended where the call is synchronous."""

    name: HookOpName
    async_op: bool
    work: Work | None
    op_id: int


_NAMES = {
    "broadcast": HookOpName.BROADCAST,
    "all_reduce": HookOpName.ALLREDUCE,
    "reduce": HookOpName.REDUCE,
    "all_gather": HookOpName.ALLGATHER,
    "gather": HookOpName.GATHER,
    "scatter": HookOpName.SCATTER,
    "reduce_scatter": HookOpName.REDUCE_SCATTER,
    "all_to_all": HookOpName.ALLTOALL,
    "barrier": HookOpName.BARRIER,
    "send": HookOpName.SEND,
    "receive": HookOpName.RECV,
}
_OF_ONE_TENSOR = {
    "all_gather": HookOpName.ALLGATHER_BASE,
    "reduce_scatter": HookOpName.REDUCE_SCATTER_BASE,
    "all_to_all": HookOpName.ALLTOALL_BASE,
}
_ROOT_AT = {"broadcast": 0, "reduce": 1, "gather": 0, "scatter": 0, "send": 0, "receive": 0}  # among the arguments
_MESSAGES = ("send", "receive")
_logger = logging.getLogger(__name__)
_thread = threading.local()
_BYTES = (array, bytearray, bytes, memoryview, type(None))  # of objects, and of what ranks agree on


def call_abort_hooks(hooks: Mapping[int, Callable[[], object]]) -> None:
    """Call *hooks* in the order of their ids. What one raises is logged: the group's own error is the one to see."""
    if getattr(_thread, "is_aborting", False):  # a hook has made a call, which has failed as well
        return
    _thread.is_aborting = True
    try:
        for hook_id, hook in sorted(hooks.items(), key=lambda entry: entry[0]):
            try:
                hook()
            except Exception:
                _logger.exception("the abort hook %d failed", hook_id)
    finally:
        _thread.is_aborting = False


class Hooks:
    """The hooks of the group *members*, by their ids, in the order of which they are called."""

    def __init__(self, members: groups.ProcessGroup) -> None:
        self.members = members
        self.tables: dict[str, dict[int, Callable[..., Any]]] = {"pre": {}, "post": {}, "abort": {}}
        self.numbers = itertools.count()

    def call(self, table: str, *arguments: Any) -> None:
        """Call the hooks of *table*."""
        for _, hook in sorted(self.tables[table].items(), key=lambda entry: entry[0]):
            hook(*arguments)

    def call_after_failure(self) -> None:
        call_abort_hooks(self.tables["abort"])

    def layer(self, under: Engine, of_devices: bool) -> HookedCalls:
        """Return the layer on *under*."""
        return HookedCalls(under, self, of_devices)

    def after(self, told: PreHookArgs, name: str, operation: Any) -> None:
        """Call the hooks after the call *name*, of which the others were *told*; *operation* is the engine's, None where it has ended."""
        caller = torch_function("recv" if name == "receive" else name)
        begun = ENDED if operation is None else work.Work(caller, self.members, operation)
        outputs = told.output_tensors or told.input_tensors
        try:
            self.call("post", PostHookArgs(told.name, told.async_op, Work(begun, outputs), told.op_id))
        except BaseException as error:
            setattr(error, TOLD, True)  # the others have made the call: they need not be told
            raise


class HookedCalls(CallLayer):
    """Passes every call on to *under*, and calls *hooks* before and after."""

    def __init__(self, under: Engine, hooks: Hooks, of_devices: bool) -> None:
        super().__init__(under, hooks.members.rank, hooks.members.size)
        self.name, self.control, self.seal_key = under.name, under.control, under.seal_key
        self.hooks = hooks
        self._of_devices = of_devices

    def for_device(self, make: Callable[[Engine], Engine]) -> Engine:
        """See ``Engine``. The group puts a layer of its own on that engine."""
        return self.under.for_device(make)

    def figures(self) -> str:
        return self.under.figures()

    def _pass_on(
        self,
        name: str,
        method: Callable[..., Any],
        writes: Any,
        reads: Any,
        tensors: tuple[Any, ...],
        arguments: tuple[Any, ...],
        now: bool,
        *more: Any,
    ) -> Any:
        told: PreHookArgs | None = None
        if self.hooks.tables["pre"] or self.hooks.tables["post"]:
            if self._is_apart(name, writes, reads, tensors, more):
                return method(*tensors, *arguments, now, *more)
            told = self._told(name, tensors, arguments, now)
            self._before(name, told)
        try:
            operation = method(*tensors, *arguments, now, *more)
        except EngineError:
            self.hooks.call_after_failure()
            raise
        if operation is not None and not isinstance(operation, int):
            return _HookedWork(operation, self.hooks, told, name)
        if told is not None:
            self.hooks.after(told, name, None)
        return operation

    def _is_apart(self, name: str, writes: Any, reads: Any, tensors: tuple[Any, ...], more: tuple[Any, ...]) -> bool:
        """Tell whether hooks are not told of a call: one of the frontend's own, and one that the engine of a device takes."""
        if name == "barrier":
            return bool(more[0])
        if all(isinstance(tensor, _BYTES) for tensor in tensors):
            return True
        try:
            tensor_key(writes, reads, self._of_devices)
        except DeviceTensorError:
            return True
        except Exception:  # the engine says it better
            pass
        return False

    def _told(self, name: str, tensors: tuple[Any, ...], arguments: tuple[Any, ...], now: bool) -> PreHookArgs:
        is_of_lists = any(isinstance(tensor, (list, tuple)) for tensor in tensors)
        kind = _NAMES[name] if is_of_lists else _OF_ONE_TENSOR.get(name, _NAMES[name])
        outputs, inputs = (None, *tensors)[-2:] if tensors else (None, None)
        if name == "receive":
            outputs, inputs = inputs, None
        elif outputs is inputs:
            outputs = None
        root = arguments[_ROOT_AT[name]] if name in _ROOT_AT else -1
        return PreHookArgs(
            kind,
            not now or name in _MESSAGES,
            _listed(inputs),
            _listed(outputs),
            -1 if root is None else root,
            next(self.hooks.numbers),
        )

    def _before(self, name: str, told: PreHookArgs) -> None:
        try:
            self.hooks.call("pre", told)
        except BaseException as error:
            if name not in _MESSAGES:
                self.under.refuse(f"a hook of the group raised {error!r}")
            setattr(error, TOLD, True)
            raise


class _HookedWork(WorkLayer):
    """Does what *under* does, and calls the hooks once it has begun, or failed."""

    __slots__ = ("_hooks", "_name", "_told")

    def __init__(self, under: Any, hooks: Hooks, told: PreHookArgs | None, name: str) -> None:
        super().__init__(under)
        self._hooks, self._name = hooks, name
        self._told = told

    def mover(self) -> Any:
        return mover_of(self.under)

    def read_before_others_write(self, others: list[Any]) -> None:
        self.mover().read_before_others_write([mover_of(other) for other in others])

    def start(self) -> None:
        self.under.start()
        self._tell()

    def wait(self, timeout: float = -1.0) -> None:
        try:
            self.under.wait(timeout)
        except EngineError as error:
            goes_on = isinstance(error, CollectiveTimeoutError) and timeout >= 0 and not self.under.is_completed()
            if not goes_on:
                self._hooks.call_after_failure()
            raise
        self._tell()

    def _tell(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            self._hooks.after(told, self._name, self.under)


def _listed(tensors: Any) -> list[Any]:
    if isinstance(tensors, Iterable) and isinstance(tensors, (list, tuple)):
        return list(tensors)
    return [] if tensors is None else [tensors]
