"""Timeouts and options of calls and groups: what they mean here, and which of them cannot be honoured."""

from __future__ import annotations

from datetime import timedelta
from math import isfinite
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError, UnsupportedError
from shim.frontends.torch._calls.arguments import told
from shim.frontends.torch._errors import ArgumentTypeError


def refuse_option(caller: Caller, name: str, value: Any) -> None:
    """Raise UnsupportedError unless *value* is None."""
    if value is not None:
        raise caller.explain(
            UnsupportedError(f"{name} must be None: the torch frontend's engine has no such option, got {value!r}")
        )


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
    if timeout is None:
        raise caller.explain(ArgumentTypeError("timeout must be a datetime.timedelta, got None"), group)
    seconds = seconds_of(caller, duration_of(timeout))
    try:
        groups.set_timeout(group, seconds)
    except ShimError as error:
        raise caller.explain(error, group) from None


def barrier_seconds_of(caller: Caller, members: groups.ProcessGroup, timeout: timedelta | None) -> float:
    """Return *timeout* in seconds, after telling the others when it is none; None is -1.0, the group's own."""
    return -1.0 if timeout is None else float(told(caller, members, seconds_of, duration_of(timeout)))
