"""What a recording tells of a call that it has not seen before, and the digests of its tensors' elements."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from shim._native import View, dtype_bytes, elements_digest
from shim.core.engines.base import Tensors, check_call
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors.hollow import is_hollow
from shim.core.tracing.places import INTERNAL, OBJECTS, Place

_FEW = 64  # bytes of numbers that are no integers
# The arguments of each collective besides its tensors, in the order in which they are given here.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "broadcast": ("root",),
    "all_reduce": ("op", "factor"),
    "reduce": ("op", "root", "factor"),
    "all_gather": ("output_splits", "whole"),
    "gather": ("root", "output_splits"),
    "scatter": ("root", "input_splits"),
    "reduce_scatter": ("op", "factor", "input_splits", "whole"),
    "all_to_all": ("output_splits", "input_splits", "whole"),
    "barrier": ("before",),
    "send": ("peer", "tag"),
    "receive": ("peer", "tag"),
    "refused": (),  # a call that this rank's frontend has refused
}


def call_definition(
    group: int,
    ranks: Sequence[int],
    collective: str,
    arguments: tuple[Any, ...],
    outputs: Any,
    inputs: Any,
    now: bool,
    place: Place,
) -> dict[str, Any]:
    """Return the definition of a call in the group whose definition is *group* and which consists of the world ranks *ranks*."""
    made = dict(zip(_ARGUMENTS[collective], arguments, strict=True))
    for name in ("root", "peer"):
        if isinstance(made.get(name), int) and made[name] in range(len(ranks)):
            made[name] = ranks[made[name]]
    if "op" in made and made["op"] in ReduceOp._value2member_map_:
        made["op"] = ReduceOp(made["op"]).name
    told = {"outputs": _tensors(outputs), "inputs": _tensors(inputs)}
    is_internal = bool(place.kinds & INTERNAL or made.get("before"))
    is_of_objects = bool(place.kinds & OBJECTS)
    is_of_sizes = is_of_objects and not is_internal and not _are_bytes(told)  # of the objects that follow
    if is_of_sizes:
        is_internal, is_of_objects = True, False
    return {
        "kind": "call",
        "group": group,
        "collective": collective,
        **made,
        **told,
        "now": now,
        "source": place.text(),
        "function": place.function_name(),
        "internal": is_internal,
        "objects": is_of_objects,
        "sizes": is_of_sizes,
    }


def _tensors(tensors: Any) -> dict[str, Any] | None:
    if tensors is None:
        return None
    is_list = isinstance(tensors, (list, tuple))
    items = tensors if is_list else (tensors,)
    kind = type(items[0]) if items else type(tensors)
    told: dict[str, Any] = {"list": is_list, "type": f"{kind.__module__}.{kind.__qualname__}"}
    try:
        views = [check_call("broadcast", 0, 1, inputs=item, root=0, devices=True).views[0] for item in items]
    except Exception as error:  # the engine refuses the call, and says why
        return {**told, "unreadable": str(error)[:200], "tensors": []}
    return {**told, "tensors": [[view.dtype, view.shape] for view in views], "device": views[0].device if views else ""}


def _are_bytes(told: dict[str, Any]) -> bool:
    return all(dtype == "uint8" for one in told.values() if one for dtype, _ in one["tensors"])


def digest_of(tensors: Tensors, key: int, most: int = 0) -> int | None:
    """Return the digest under *key*, of 64 bits, of the bytes of *tensors*, one or a list, in row-major order one after the other.

    None where they cannot be read; or, unless *most* is 0, where they have more than so many bytes of integers, or more than a few of others.
    So a list of parts and one tensor that is made of them have the same.
    """
    try:
        if most and not _are_few(tensors, most):
            return None
        digest = elements_digest(tensors, key)
    except Exception:  # the engine says what is wrong with them
        return None
    if folder := os.environ.get("SHIM_TRACE_VALUES"):
        with suppress(OSError, ValueError):  # negative strides
            _keep_values(tensors, os.path.join(folder, f"{digest:016x}"))
    return digest


def _are_few(tensors: Tensors, most: int) -> bool:
    """Tell whether *tensors* have at most *most* bytes of integers, or a few of anything, in memory."""
    items = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    views = [check_call("broadcast", 0, 1, inputs=item, root=0).views[0] for item in items]
    are_integers = all("int" in view.dtype or view.dtype == "bool" for view in views)
    size = sum(dtype_bytes(view.dtype) * prod(view.shape) for view in views)
    return size <= (most if are_integers else _FEW) and not any(is_hollow(view.address) for view in views)


def _keep_values(tensors: Tensors, path: str) -> None:
    """Write the bytes of which the digest is to the file *path*, which is named after it."""
    items = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    views = [check_call("broadcast", 0, 1, inputs=item, root=0).views[0] for item in items]
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.{os.getpid()}", "wb") as file:
        file.writelines(_elements(view) for view in views)
    os.replace(file.name, path)


def _elements(view: View) -> bytes:
    """Return the bytes of the elements in row-major order."""
    if 0 in view.shape:
        return b""
    size = dtype_bytes(view.dtype)
    last = sum((count - 1) * stride for count, stride in zip(view.shape, view.strides, strict=True))
    memory = memoryview((ctypes.c_char * ((last + 1) * size)).from_address(view.address))
    return np.ndarray(view.shape, f"V{size}", memory, strides=[each * size for each in view.strides]).tobytes()
