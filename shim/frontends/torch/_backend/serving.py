"""torch's own groups of host memory on the engine, although a program asks for gloo or names no backend.

All of torch's ways to make a group come to one function of ``torch.distributed.distributed_c10d``; it is replaced meanwhile. A program
still reads the backend that it has asked for.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.distributed.distributed_c10d

from shim.errors import UnsupportedError
from shim.frontends.torch._backend.making import link, record
from shim.frontends.torch._backend.own_record import OF_HOST_MEMORY
from shim.frontends.torch._backend.store import EngineStore
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._stores.stores import Store, core_of

_INIT = torch_function("init_process_group")
_c10d: Any = torch.distributed.distributed_c10d  # whose function is no public one
_found: list[Any] = []  # the function that was there, while ours stands in its place


def serve() -> None:
    """From now on, make torch's own groups of host memory groups of the engine."""
    link()
    if not record.is_served:
        _found.append(_c10d._new_process_group_helper)
        _c10d._new_process_group_helper = functools.wraps(_found[-1])(_make_served)
        record.is_served = True


def stop_serving() -> None:
    """From now on, make torch's own groups as before ``serve``; those that were made stay."""
    if record.is_served:
        _c10d._new_process_group_helper = _found.pop()
        record.is_served = False


def _make_served(
    group_size: int,
    group_rank: int,
    global_ranks_in_group: list[int],
    backend: Any,
    store: Any,
    *others: Any,
    **named: Any,
) -> Any:
    ranks = group_size, group_rank, global_ranks_in_group
    if isinstance(store, Store) and not isinstance(store, EngineStore):  # the frontend's, in a substituted program
        store = EngineStore(functools.partial(core_of, store))
    if not _is_served(str(backend)):
        return _found[-1](*ranks, backend, store, *others, **named)
    used = store
    group, store = _found[-1](*ranks, Backend.SHIM, store, *others, **named)
    if isinstance(group, record.group_class):
        vars(group)["of_the_program"] = used  # of which torch's own prefixes hold the part in C++ alone
        group.backend = group.core.backend = str(backend)
        record.name_backend(group, str(backend), store)
    return group, store


def _is_served(backend: str) -> bool:
    """Tell whether the engine makes a group of *backend*, which may be pairs of devices and backends.

    Raises: UnsupportedError where a device that is there wants another backend beside it.
    """
    if backend == "undefined":
        return torch.accelerator.current_accelerator(check_available=True) is None
    pairs = _c10d.BackendConfig(_c10d.Backend(backend)).get_device_backend_map()
    if pairs.get("cpu") not in OF_HOST_MEMORY:
        return False
    others = [device for device, name in pairs.items() if name not in OF_HOST_MEMORY and _is_there(device)]
    if others:
        raise _INIT.explain(
            UnsupportedError(
                f"backend must name the CPU alone where the engine serves it, got {backend!r}: torch {torch.__version__} makes one "
                f"group for all devices of a backend in Python, and {others[0]} would be lost\n"
                "Make one group with 'cpu:gloo' and another for the device, or unset SHIM_TORCH_BACKEND."
            )
        )
    return True


def _is_there(device: str) -> bool:
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator is not None and accelerator.type == device
