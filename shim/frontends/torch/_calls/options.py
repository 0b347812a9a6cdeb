"""Timeouts, devices and options of calls and groups: what they mean here, and which of them cannot be honoured."""

from __future__ import annotations

from datetime import timedelta
from math import isfinite
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError, UnsupportedError
from shim.frontends.torch._calls.arguments import told
from shim.frontends.torch._errors import ArgumentTypeError

__all__ = [
    "barrier_seconds_of",
    "check_device_ids",
    "duration_of",
    "refuse_device",
    "refuse_device_ids",
    "refuse_option",
    "seconds_of",
    "set_timeout",
]


def refuse_option(caller: Caller, name: str, value: Any) -> None:
    """Raise UnsupportedError unless *value* is None."""
    if value is not None:
        raise caller.explain(
            UnsupportedError(f"{name} must be None: the torch frontend's engine has no such option, got {value!r}")
        )


def refuse_device(caller: Caller, name: str, device: Any) -> None:
    """Raise UnsupportedError unless *device*, or each of a list of them, is None or the CPU.

    A number names an accelerator, and what a caller expects of one, order with its streams, cannot be given.
    """
    for one in device if isinstance(device, (list, tuple)) else [device]:
        if one is not None and not str(one).startswith("cpu"):
            raise caller.explain(
                UnsupportedError(
                    f"{name} must be None or the CPU: the torch frontend's engine works on host memory, got {device!r}"
                )
            )


def check_device_ids(caller: Caller, device_ids: Any) -> None:
    """Raise for what is neither a rank's number nor a list of such or of the CPU; as with gloo, a number chooses nothing."""
    for one in device_ids if isinstance(device_ids, (list, tuple)) else [device_ids]:
        if not isinstance(one, int):
            refuse_device(caller, "device_ids", one)


def duration_of(timeout: Any) -> Any:
    """Return seconds that are given as a float as a timedelta, as torch's bindings take them; anything else as it is."""
    if not isinstance(timeout, float) or not isfinite(timeout):
        return timeout
    return timedelta(seconds=min(max(timeout, -1e9), 1e9))  # of what no timedelta holds


def seconds_of(caller: Caller, timeout: timedelta | None) -> float:
    """Return *timeout* in seconds; None is torch's default."""
    if timeout is None:
        return groups.DEFAULT_TIMEOUT
    if not isinstance(timeout, timedelta):
        raise caller.explain(ArgumentTypeError(f"timeout must be a datetime.timedelta, got {timeout!r}"))
    if timeout <= timedelta(0):
        raise caller.explain(ArgumentError(f"timeout must be positive, got {timeout!r}"))
    return timeout.total_seconds()


def set_timeout(caller: Caller, group: groups.ProcessGroup, timeout: timedelta) -> None:
    """Set the timeout of this rank in *group* from now on."""
    seconds = seconds_of(caller, duration_of(timeout))
    try:
        groups.set_timeout(group, seconds)
    except ShimError as error:
        raise caller.explain(error, group) from None


def barrier_seconds_of(caller: Caller, members: groups.ProcessGroup, timeout: timedelta | None) -> float:
    """Return *timeout* in seconds, after telling the others when it is none; None is -1.0, the group's own."""
    return -1.0 if timeout is None else float(told(caller, members, seconds_of, duration_of(timeout)))


def refuse_device_ids(caller: Caller, members: groups.ProcessGroup, device_ids: Any) -> None:
    """Refuse *device_ids* that are none, and tell the others."""
    if device_ids is not None:
        told(caller, members, check_device_ids, device_ids)
