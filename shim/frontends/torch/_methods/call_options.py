"""The options objects that the methods of ProcessGroup take, with torch's fields and defaults."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from operator import index
from typing import Any

from shim.core import work
from shim.frontends.torch._calls.options import duration_of
from shim.frontends.torch._calls.reduce_op import ReduceOp, is_op
from shim.frontends.torch._calls.work import Work, begin
from shim.frontends.torch._errors import ArgumentTypeError

_ZERO = timedelta(0)
_UNSET = timedelta(milliseconds=-1)  # torch's own mark for a timeout that was not given


class CallOptions:
    """What every call has: *asyncOp*, whether it runs in the background, and *timeout*, the group's own when negative."""

    __slots__ = ("asyncOp", "timeout")
    asyncOp: bool
    timeout: timedelta

    def __init__(self) -> None:
        self.asyncOp = True
        self.timeout = _UNSET

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, _FIELDS[name](name, value) if name in _FIELDS else value)


class _WithOp(CallOptions):
    __slots__ = ("reduceOp",)
    reduceOp: Any

    def __init__(self) -> None:
        super().__init__()
        self.reduceOp = ReduceOp.SUM


class _WithRoot(CallOptions):
    __slots__ = ("rootRank",)
    rootRank: int

    def __init__(self) -> None:
        super().__init__()
        self.rootRank = 0


class AllgatherOptions(CallOptions):
    """Options of ``allgather``."""

    __slots__ = ()


class AllToAllOptions(CallOptions):
    """Options of ``alltoall``."""

    __slots__ = ()


class AllreduceOptions(_WithOp):
    """Options of ``allreduce``: *reduceOp* combines the elements."""

    __slots__ = ()


class AllreduceCoalescedOptions(_WithOp):
    """Options of ``allreduce_coalesced``: *reduceOp* combines the elements."""

    __slots__ = ()


class ReduceScatterOptions(_WithOp):
    """Options of ``reduce_scatter``: *reduceOp* combines the elements."""

    __slots__ = ()


class GatherOptions(_WithRoot):
    """Options of ``gather``: *rootRank*, a group rank, gets the elements."""

    __slots__ = ()


class ScatterOptions(_WithRoot):
    """Options of ``scatter``: *rootRank*, a group rank, has the elements."""

    __slots__ = ()


class _WithRootTensor(_WithRoot):
    __slots__ = ("rootTensor",)
    rootTensor: int

    def __init__(self) -> None:
        super().__init__()
        self.rootTensor = 0


class BroadcastOptions(_WithRootTensor):
    """Options of ``broadcast``: tensor *rootTensor*, of which there is one, of group rank *rootRank* has the elements."""

    __slots__ = ()


class ReduceOptions(_WithRootTensor):
    """Options of ``reduce``: *reduceOp* combines the elements into those of group rank *rootRank*."""

    __slots__ = ("reduceOp",)
    reduceOp: Any

    def __init__(self) -> None:
        super().__init__()
        self.reduceOp = ReduceOp.SUM


class BarrierOptions(CallOptions):
    """Options of ``barrier``: *device* and *device_ids* name the CPU, or nothing."""

    __slots__ = ("device", "device_ids")
    device: Any
    device_ids: list[int]

    def __init__(self) -> None:
        super().__init__()
        self.device = None
        self.device_ids = []


def _is_torchs_own(kind: Any, own: Any) -> bool:
    return bool(own.__name__ == kind.__name__ and own.__module__.startswith("torch."))


# Whether the second class is torch's own of the options that the first is; torch's code passes these.
is_torchs_own: Callable[[Any, Any], bool] = functools.cache(_is_torchs_own)


def ends_in_the_call(opts: Any) -> bool:
    """Tell whether a call with *opts*, ours or torch's own, ends before it returns, and waits no longer than the group does."""
    return getattr(opts, "asyncOp", True) is False and opts.timeout < _ZERO


def begin_as(opts: Any, prepared: work.Work, outputs: Any) -> Work:
    """Start *prepared*, unless it has ended, or carry it out here, as *opts* say, and return its Work either way."""
    if prepared is work.ENDED:
        return Work(prepared, outputs)
    return begin(prepared, outputs, opts.timeout.total_seconds(), getattr(opts, "asyncOp", True))


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "a bool", value)
    return value


def _duration(name: str, value: Any) -> timedelta:
    value = duration_of(value)
    if not isinstance(value, timedelta):
        raise _wrong(name, "a datetime.timedelta", value)
    return value


def _whole(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise _wrong(name, "an integer", value) from None


def _op(name: str, value: Any) -> Any:
    if not is_op(value):
        raise _wrong(name, "a torch.distributed.ReduceOp", value)
    return ReduceOp(value) if isinstance(value, ReduceOp.RedOpType) else value


def _wholes(name: str, value: Any) -> list[int]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(name, "a list of integers", value)
    return [_whole(name, one) for one in value]


def _wrong(name: str, what: str, value: Any) -> ArgumentTypeError:
    return ArgumentTypeError(f"torch.distributed: the option {name} must be {what}, got {value!r}")


_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "asyncOp": _flag,
    "device_ids": _wholes,
    "reduceOp": _op,
    "rootRank": _whole,
    "rootTensor": _whole,
    "timeout": _duration,
}
