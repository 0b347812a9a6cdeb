"""The collectives in which one rank's tensors are sent to all others, or all others' to it; they write in place.

The root is a rank of the world. They have no gradient: a rank that is not the root may have nothing to differentiate,
and would not come to the collective of the root's gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.frontends.mindspore._arguments import (
    alike,
    full_list,
    group_for,
    one_tensor,
    reduce_op,
    root_of,
    tensor_list,
)
from shim.frontends.mindspore._gradients.recording import refuse_gradient
from shim.frontends.mindspore._handles import CommHandle, handle_of


def broadcast(caller: Caller, tensor: Any, src: int, group: str | None, async_op: bool) -> CommHandle | None:
    """Copy *src*'s *tensor* into every rank's."""
    found = group_for(caller, group, async_op)
    root = root_of(caller, found, src)
    one_tensor(caller, found, "output", tensor)
    refuse_gradient(caller, found, [tensor])
    return handle_of(calls.broadcast(caller, found, tensor, root, now=not async_op), async_op)


def reduce(caller: Caller, tensor: Any, dst: int, op: str, group: str | None, async_op: bool) -> CommHandle | None:
    """Combine all ranks' *tensor* into *dst*'s."""
    found = group_for(caller, group, async_op)
    root, kind = root_of(caller, found, dst), reduce_op(caller, found, op)
    one_tensor(caller, found, "output", tensor)
    refuse_gradient(caller, found, [tensor])
    return handle_of(calls.reduce(caller, found, tensor, tensor, kind, root, now=not async_op), async_op)


def gather(
    caller: Caller, tensor: Any, gather_list: Sequence[Any], dst: int, group: str | None, async_op: bool
) -> CommHandle | None:
    """Copy each rank's *tensor* into its place in *dst*'s *gather_list*; the others' lists must be valid too."""
    found = group_for(caller, group, async_op)
    root = root_of(caller, found, dst)
    one_tensor(caller, found, "input", tensor)
    alike(caller, found, "output", tensor_list(caller, found, "output", gather_list))
    if found.rank == root:
        alike(caller, found, "output", [tensor, *full_list(caller, found, "output", gather_list)])
    refuse_gradient(caller, found, [tensor, *gather_list])
    outputs = gather_list if found.rank == root else None
    return handle_of(calls.gather(caller, found, outputs, tensor, root, now=not async_op), async_op)


def gather_into_tensor(
    caller: Caller, output: Any, input: Any, dst: int, group: str | None, async_op: bool
) -> CommHandle | None:
    """Concatenate all ranks' *input* in *dst*'s *output*; the others' outputs must be tensors too."""
    found = group_for(caller, group, async_op)
    root = root_of(caller, found, dst)
    alike(caller, found, "output", [one_tensor(caller, found, "output", output)])
    one_tensor(caller, found, "input", input)
    refuse_gradient(caller, found, [output, input])
    outputs = output if found.rank == root else None
    return handle_of(calls.gather(caller, found, outputs, input, root, now=not async_op), async_op)


def scatter(
    caller: Caller, tensor: Any, scatter_list: Sequence[Any], src: int, group: str | None, async_op: bool
) -> CommHandle | None:
    """Copy each rank's place of *src*'s *scatter_list* into its *tensor*; the others' lists must be valid too."""
    found = group_for(caller, group, async_op)
    root = root_of(caller, found, src)
    one_tensor(caller, found, "output", tensor)
    alike(caller, found, "input", tensor_list(caller, found, "input", scatter_list))
    if found.rank == root:
        alike(caller, found, "input", [tensor, *full_list(caller, found, "input", scatter_list)])
    refuse_gradient(caller, found, [tensor, *scatter_list])
    inputs = scatter_list if found.rank == root else None
    return handle_of(calls.scatter(caller, found, tensor, inputs, root, now=not async_op), async_op)


def scatter_tensor(
    caller: Caller, output: Any, input: Any, src: int, group: str | None, async_op: bool
) -> CommHandle | None:
    """Copy each rank's rows of *src*'s *input* into its *output*; the others' inputs must be tensors too."""
    found = group_for(caller, group, async_op)
    root = root_of(caller, found, src)
    one_tensor(caller, found, "output", output)
    alike(caller, found, "input", [one_tensor(caller, found, "input", input)])
    refuse_gradient(caller, found, [output, input])
    inputs = input if found.rank == root else None
    return handle_of(calls.scatter(caller, found, output, inputs, root, now=not async_op), async_op)
