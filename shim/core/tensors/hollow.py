"""Tensors without memory: torch's on device meta, and those of its FakeTensorMode. A rehearsal takes them, where nobody reads an element."""

from __future__ import annotations

import sys
from typing import Any

_FIRST = 1 << 60  # no process has memory from here on
_STEP = 64

_taken: list[int] = []  # the next address, where such tensors are taken


def take_hollow_tensors() -> None:
    """Have tensors without memory be read from now on, in this process: each time, they lie elsewhere."""
    if not _taken:
        _taken.append(_FIRST)


def are_hollow_taken() -> bool:
    return bool(_taken)


def is_hollow(address: int) -> bool:
    """Tell whether *address* is that of a tensor without memory."""
    return address >= _FIRST


def is_taken(tensor: Any) -> bool:
    """Tell whether *tensor*, of torch, has no memory, and such ones are taken."""
    return bool(_taken) and (tensor.device.type == "meta" or _is_fake(tensor))


def hollow_address(size: int) -> int:
    """Return an address for *size* bytes."""
    address = _taken[0]
    _taken[0] = max(_FIRST, (address + size + _STEP) % (1 << 62))
    return address


def _is_fake(tensor: Any) -> bool:
    module = sys.modules.get("torch._subclasses.fake_tensor")
    return module is not None and isinstance(tensor, module.FakeTensor)
