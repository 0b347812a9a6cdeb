"""Devices that torch code names, besides those that its tensors are on: what a group is bound to, and what a barrier waits for."""

from __future__ import annotations

import sys
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.torch._calls.arguments import told


def accelerator() -> Any:
    """Return torch's accelerator, a ``torch.device``; None where there is none, or torch has not been imported."""
    torch = sys.modules.get("torch")
    return None if torch is None else torch.accelerator.current_accelerator(check_available=True)


def kinds_of_devices() -> list[str]:
    """Return the kinds of devices whose tensors a group takes, the CPU's first."""
    found = accelerator()
    return ["cpu"] if found is None else ["cpu", found.type]


def bound_device(caller: Caller, device_id: Any) -> Any:
    """Return the ``torch.device`` of the accelerator that *device_id*, one or its number, names; None for None and the CPU.

    Raises ArgumentError for one that is not there.
    """
    if device_id is None or str(device_id).startswith("cpu"):
        return None
    kind = accelerator()
    if kind is None:
        raise caller.explain(
            ArgumentError(f"device_id must be None or the CPU where torch has no accelerator, got {device_id!r}")
        )
    torch = sys.modules["torch"]
    count = torch.accelerator.device_count()
    found = torch.device(kind.type, device_id) if device_id in range(count) else device_id
    if getattr(found, "type", None) != kind.type or found.index not in range(count):
        raise caller.explain(
            ArgumentError(
                f"device_id must be None, the CPU, or one of the {count} devices {kind.type}:0, ..., got {device_id!r}"
            )
        )
    return found


def check_device(caller: Caller, name: str, device: Any) -> None:
    """Raise UnsupportedError unless *device* is None, the CPU or torch's accelerator: objects may come from each, and stay in host memory."""
    kind = accelerator()
    if kind is None or str(getattr(device, "type", device)).partition(":")[0] != kind.type:
        refuse_device(caller, name, device)


def refuse_device(caller: Caller, name: str, device: Any) -> None:
    """Raise UnsupportedError unless *device*, or each of a list of them, is None or the CPU."""
    for one in device if isinstance(device, (list, tuple)) else [device]:
        if one is not None and not str(one).startswith("cpu"):
            raise caller.explain(
                UnsupportedError(
                    f"{name} must be None or the CPU{'' if accelerator() else ', as torch has no accelerator here'}, got {device!r}"
                )
            )


def finish_before_barrier(caller: Caller, members: groups.ProcessGroup, device_ids: Any, bound: Any) -> None:
    """Wait for what the current stream of a barrier's device holds, so that the barrier covers it: the ranks then meet in host memory.

    The device is the first of *device_ids*, numbers of torch's accelerator; else *bound*, the group's own; else, where the group's
    backend serves no host memory, the current one. A number means nothing where torch has no accelerator. Raises UnsupportedError,
    and tells the others, for other *device_ids*.
    """
    if device_ids is not None:
        told(caller, members, _check_device_ids, device_ids)
    kind = accelerator()
    if kind is None:
        return
    current_stream = sys.modules["torch"].accelerator.current_stream
    if isinstance(device_ids, (list, tuple)) and device_ids and isinstance(device_ids[0], int):
        current_stream(device_ids[0]).synchronize()
    elif bound is not None:
        current_stream(bound).synchronize()
    elif _is_for_devices_alone(members.backend):
        current_stream().synchronize()


def _is_for_devices_alone(backend: str) -> bool:
    return backend in ("nccl", "xccl") or (":" in backend and "cpu:" not in backend)


def _check_device_ids(caller: Caller, device_ids: Any) -> None:
    """Raise for what is neither a number from 0 on nor a list of such or of the CPU."""
    for one in device_ids if isinstance(device_ids, (list, tuple)) else [device_ids]:
        if not isinstance(one, int):
            refuse_device(caller, "device_ids", one)
        elif one < 0:
            raise caller.explain(ArgumentError(f"device_ids must be numbers from 0 on, got {device_ids!r}"))
