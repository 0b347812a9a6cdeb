"""What the options of initialisation and of new groups mean here, and which of them cannot be honoured."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError, UnsupportedError
from shim.frontends.torch.distributed import _groups
from shim.frontends.torch.distributed._arguments import told
from shim.frontends.torch.distributed._errors import ArgumentAssertionError, ArgumentTypeError

__all__ = [
    "barrier_seconds_of",
    "check_init",
    "given",
    "host_group_of",
    "refuse_device",
    "refuse_option",
    "require_same_timeout",
    "seconds_of",
]


def check_init(
    caller: Caller,
    init_method: str | None,
    store: Any,
    world_size: int,
    rank: int,
    pg_options: Any,
    device_id: Any,
    ranks: list[int] | None,
) -> None:
    """Raise for a second initialisation, for arguments that exclude each other, and for those without a meaning here."""
    if _groups.world_view() is not None:
        raise caller.explain(
            StateError("the default process group is initialised already\nCall destroy_process_group before.")
        )
    if store is not None and init_method is not None:
        raise caller.explain(ArgumentAssertionError("store and init_method must not both be given"))
    if store is not None and (world_size <= 0 or rank < 0):
        raise caller.explain(
            ArgumentAssertionError(f"store needs world_size and rank, got world_size {world_size} and rank {rank}")
        )
    refuse_option(caller, "pg_options", pg_options)
    refuse_option(caller, "_ranks", ranks)
    refuse_device(caller, "device_id", device_id)


def refuse_option(caller: Caller, name: str, value: Any) -> None:
    """Raise UnsupportedError unless *value* is None."""
    if value is not None:
        raise caller.explain(
            UnsupportedError(
                f"{name} must be None: the torch frontend's shared_memory engine has no such, got {value!r}"
            )
        )


def refuse_device(caller: Caller, name: str, device: Any) -> None:
    """Raise UnsupportedError unless *device*, or each of a list of them, is None or the CPU.

    A number names an accelerator, and what a caller expects of one, order with its streams, cannot be given.
    """
    for one in device if isinstance(device, (list, tuple)) else [device]:
        if one is not None and not str(one).startswith("cpu"):
            raise caller.explain(
                UnsupportedError(
                    f"{name} must be None or the CPU: the torch frontend's shared_memory engine works on host memory, "
                    f"got {device!r}"
                )
            )


def seconds_of(caller: Caller, timeout: timedelta | None) -> float:
    """Return *timeout* in seconds; None is torch's default."""
    if timeout is None:
        return groups.DEFAULT_TIMEOUT
    if not isinstance(timeout, timedelta):
        raise caller.explain(ArgumentTypeError(f"timeout must be a datetime.timedelta, got {timeout!r}"))
    if timeout <= timedelta(0):
        raise caller.explain(ArgumentError(f"timeout must be positive, got {timeout!r}"))
    return timeout.total_seconds()


def given(number: int) -> int | None:
    """Return *number*, or None for torch's -1, which stands for a number that was not given."""
    return None if number == -1 else number


def require_same_timeout(caller: Caller, group: groups.ProcessGroup, timeout: timedelta) -> None:
    """Raise UnsupportedError unless *timeout* is what *group* was made with: its engine keeps that."""
    seconds = seconds_of(caller, timeout)
    if seconds != group.timeout:
        raise caller.explain(
            UnsupportedError(
                f"timeout must be the group's {group.timeout:g} s in the torch frontend: the shared_memory engine keeps "
                f"what a group was made with, got {timeout}\nGive the timeout to init_process_group or new_group."
            ),
            group,
        )


def host_group_of(caller: Caller, group: Any, device_ids: Any) -> groups.ProcessGroup:
    """Return core's group for a ``group`` argument, after refusing *device_ids* of accelerators and telling the others."""
    told(caller, group, refuse_device, "device_ids", device_ids)
    return _groups.group_of(caller, group)


def barrier_seconds_of(caller: Caller, group: Any, timeout: timedelta | None) -> float:
    """Return *timeout* in seconds, after telling the others when it is none; None is -1.0, the group's own."""
    return -1.0 if timeout is None else float(told(caller, group, seconds_of, timeout))
