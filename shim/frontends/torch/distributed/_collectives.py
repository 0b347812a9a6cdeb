"""The collectives that move elements as they are, at torch's signatures; tensors of any framework are taken."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shim.core import calls
from shim.core.engines.base import Tensor
from shim.core.work import ENDED
from shim.frontends.torch._calls.arguments import (
    is_now,
    list_at_root,
    list_of,
    outputs_at_root,
    outputs_of,
    root_of,
    splits_of,
)
from shim.frontends.torch._calls.coalesced_lists import all_gather_together
from shim.frontends.torch._calls.deprecations import deprecated, renamed
from shim.frontends.torch._calls.devices import finish_before_barrier
from shim.frontends.torch._calls.monitored_barrier import monitored
from shim.frontends.torch._calls.options import barrier_seconds_of
from shim.frontends.torch._calls.whole_tensors import all_gather_whole, gather_whole
from shim.frontends.torch._calls.work import Work, finish
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.group_arguments import bound_to, group_of
from shim.frontends.torch._groups.process_group import GroupMember, ProcessGroup

__all__ = [
    "_all_gather_base",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "gather_into_tensor",
    "gather_single",
    "monitored_barrier",
    "scatter",
]

_BROADCAST = torch_function("broadcast", output="tensor", input="tensor", root="src")
_ALL_GATHER = torch_function("all_gather", output="tensor_list", input="tensor")
_ALL_GATHER_BASE = torch_function("_all_gather_base", output="output_tensor", input="input_tensor")
_ALL_GATHER_COALESCED = torch_function("all_gather_coalesced", output="output_tensor_lists", input="input_tensor_list")
_ALL_GATHER_SINGLE = torch_function("all_gather_single", output="output_tensor", input="input_tensor")
_ALL_GATHER_INTO_TENSOR = torch_function("all_gather_into_tensor", output="output_tensor", input="input_tensor")
_GATHER = torch_function("gather", output="gather_list", input="tensor", root="dst")
_GATHER_SINGLE = torch_function("gather_single", output="gather_tensor", input="tensor", root="dst")
_GATHER_INTO_TENSOR = torch_function("gather_into_tensor", output="gather_tensor", input="tensor", root="dst")
_SCATTER = torch_function("scatter", output="tensor", input="scatter_list", root="src")
_ALL_TO_ALL = torch_function("all_to_all", output="output_tensor_list", input="input_tensor_list")
_ALL_TO_ALL_SINGLE = torch_function(
    "all_to_all_single", output_splits="output_split_sizes", input_splits="input_split_sizes"
)
_BARRIER = torch_function("barrier")
_MONITORED_BARRIER = torch_function("monitored_barrier")


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the *tensor* of the world's rank *src*, or of *group*'s rank *group_src*, into every rank's *tensor*, all of one shape.

    Raises: ValueError unless exactly one of *src* and *group_src* is given.
    Deviates: outside the group it always warns and returns None; torch 2.13 may raise ValueError for the root.
    Deviates: where *tensor* is written, one whose elements share memory raises TypeError; torch 2.13 takes it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.broadcast
    """
    members = group_of(_BROADCAST, group)
    root = root_of(_BROADCAST, members, src, group_src)
    now = async_op is False or is_now(_BROADCAST, members, async_op)
    work = calls.broadcast(_BROADCAST, members, tensor, root, now)
    return None if work is ENDED else finish(work, async_op, tensor)


def all_gather(
    tensor_list: list[Any], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Copy every rank's *tensor* into its place in *tensor_list*, which holds a tensor of its shape for each rank.

    Raises: TypeError when *tensor_list* is no list; ValueError for a wrong length, size or dtype.
    Deviates: the same tensor twice in *tensor_list* raises ValueError; torch 2.13 leaves the last rank's data in it.
    Deviates: complex numbers cannot be mixed with their element type; torch allows it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_gather
    """
    members = group_of(_ALL_GATHER, group)
    outputs = outputs_of(_ALL_GATHER, members, "output", tensor_list)
    now = async_op is False or is_now(_ALL_GATHER, members, async_op)
    work = calls.all_gather(_ALL_GATHER, members, outputs, tensor, None, now)
    return None if work is ENDED else finish(work, async_op, tensor_list)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gather all n ranks' *input_tensor*, each of shape (m, ...), into *output_tensor*, (n * m, ...) or (n, m, ...).

    Raises: ValueError for another shape or dtype.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_gather_single
    """
    return all_gather_whole(
        _ALL_GATHER_SINGLE, group_of(_ALL_GATHER_SINGLE, group), output_tensor, input_tensor, async_op
    )


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gather all n ranks' *input_tensor*, each of shape (m, ...), into *output_tensor*, (n * m, ...) or (n, m, ...).

    Raises: ValueError for another shape or dtype; warns (FutureWarning) of its new name, all_gather_single.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_gather_into_tensor
    """
    return all_gather_whole(
        renamed(_ALL_GATHER_INTO_TENSOR, "all_gather_single", until="2.14"),
        group_of(_ALL_GATHER_INTO_TENSOR, group),
        output_tensor,
        input_tensor,
        async_op,
    )


def _all_gather_base(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gather every rank's *input_tensor* (n, ...) into *output_tensor*, (size * n, ...) or (size, n, ...).

    Raises: ValueError for another shape or dtype; warns (FutureWarning) of its new name, all_gather_single.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_gather_single
    """
    return all_gather_whole(
        deprecated(_ALL_GATHER_BASE, "all_gather_single", "2.0", "all_gather_into_tensor"),
        group_of(_ALL_GATHER_BASE, group),
        output_tensor,
        input_tensor,
        async_op,
    )


def all_gather_coalesced(
    output_tensor_lists: list[list[Any]],
    input_tensor_list: list[Any],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Copy every rank's *input_tensor_list* into its place in *output_tensor_lists*, of the same shapes; returns a Future when *async_op*.

    Raises: TypeError for what is no list; ValueError for a wrong length, size or dtype; warns (FutureWarning).
    Deviates: even with *async_op*, it returns only after every rank has called, because the lists' lengths are compared.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_gather_coalesced
    """
    return all_gather_together(
        deprecated(_ALL_GATHER_COALESCED, "all_gather for each tensor", "2.0"),
        group_of(_ALL_GATHER_COALESCED, group),
        output_tensor_lists,
        input_tensor_list,
        async_op,
    )


def gather(
    tensor: Tensor,
    gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Copy every rank's *tensor* into its place, of that shape, in *gather_list* on *dst* or *group_dst*.

    *dst* is a rank of the world, *group_dst* of *group*; neither means the world's rank 0.
    Raises: ValueError when *gather_list* is missing there or given elsewhere.
    Deviates: the same tensor twice in *gather_list* raises ValueError; torch 2.13 leaves the last rank's data in it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.gather
    """
    members = group_of(_GATHER, group)
    root = root_of(_GATHER, members, dst, group_dst, 0)
    outputs = outputs_at_root(_GATHER, members, "output", gather_list, root)
    now = async_op is False or is_now(_GATHER, members, async_op)
    work = calls.gather(_GATHER, members, outputs, tensor, root, None, now)
    return None if work is ENDED else finish(work, async_op, gather_list or [])


def gather_single(
    tensor: Tensor,
    gather_tensor: Tensor | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather all n ranks' *tensor*, each of m elements, into *gather_tensor*, any shape of n * m elements, on *dst* or *group_dst*.

    *dst* is a rank of the world, *group_dst* of *group*; neither means the world's rank 0. Elsewhere *gather_tensor* is not used.
    Raises: ValueError when *gather_tensor* is missing there, or has another number of elements or dtype.
    Deviates: it works with every backend string; torch 2.15's gloo has no gather_single and raises RuntimeError.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.gather_single
    """
    members = group_of(_GATHER_SINGLE, group)
    root = root_of(_GATHER_SINGLE, members, dst, group_dst, 0)
    return gather_whole(_GATHER_SINGLE, members, gather_tensor, tensor, root, async_op)


def gather_into_tensor(
    tensor: Tensor,
    gather_tensor: Tensor | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Do what ``gather_single`` does with *tensor*, *gather_tensor*, *dst* (a rank of the world), *group* and *group_dst* (one of *group*).

    Raises: ValueError when *gather_tensor* is missing on that rank, or has another number of elements than all *tensor*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.gather_into_tensor
    """
    members = group_of(_GATHER_INTO_TENSOR, group)
    root = root_of(_GATHER_INTO_TENSOR, members, dst, group_dst, 0)
    return gather_whole(_GATHER_INTO_TENSOR, members, gather_tensor, tensor, root, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy each rank's place in the *scatter_list* of *src* or *group_src* into *tensor*, of that shape.

    *src* is a rank of the world, *group_src* of *group*; neither means the world's rank 0.
    Raises: ValueError when *scatter_list* is missing there or given elsewhere.
    Deviates: outside the group it always warns and returns None; torch 2.13 may raise ValueError for the root.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.scatter
    """
    members = group_of(_SCATTER, group)
    root = root_of(_SCATTER, members, src, group_src, 0)
    inputs = list_at_root(_SCATTER, members, "input", scatter_list, root)
    now = async_op is False or is_now(_SCATTER, members, async_op)
    work = calls.scatter(_SCATTER, members, tensor, inputs, root, None, now)
    return None if work is ENDED else finish(work, async_op, tensor)


def all_to_all(
    output_tensor_list: list[Any],
    input_tensor_list: list[Any],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send tensor *j* of *input_tensor_list* to rank *j*, into this rank's place, of the same shape, in its *output_tensor_list*.

    Raises: TypeError when one is no list; ValueError for a wrong length, size or dtype.
    Deviates: the same tensor twice in *output_tensor_list* raises ValueError; torch 2.13 leaves the last rank's data in it.
    Deviates: complex numbers cannot be mixed with their element type; torch allows it.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_to_all
    """
    members = group_of(_ALL_TO_ALL, group)
    outputs = outputs_of(_ALL_TO_ALL, members, "output", output_tensor_list)
    inputs = list_of(_ALL_TO_ALL, members, "input", input_tensor_list)
    now = async_op is False or is_now(_ALL_TO_ALL, members, async_op)
    work = calls.all_to_all(_ALL_TO_ALL, members, outputs, inputs, None, None, now)
    return None if work is ENDED else finish(work, async_op, output_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Cut *input* along dimension 0 into a part for each rank and put the parts received one after the other in *output*.

    *output_split_sizes* and *input_split_sizes* are the rows of each rank's part; None means equal parts.
    Raises: ValueError for sizes that do not add up to the rows, or rows that cannot be cut equally.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_to_all_single
    """
    members = group_of(_ALL_TO_ALL_SINGLE, group)
    rows = (
        None
        if output_split_sizes is None
        else splits_of(_ALL_TO_ALL_SINGLE, members, "output_splits", output_split_sizes)
    )
    cuts = (
        None if input_split_sizes is None else splits_of(_ALL_TO_ALL_SINGLE, members, "input_splits", input_split_sizes)
    )
    now = async_op is False or is_now(_ALL_TO_ALL_SINGLE, members, async_op)
    work = calls.all_to_all(_ALL_TO_ALL_SINGLE, members, output, input, rows, cuts, now, True)
    return None if work is ENDED else finish(work, async_op, output)


def barrier(
    group: ProcessGroup | None = GroupMember.WORLD,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until every rank of *group* has called this, within *timeout*, a timedelta (None: the group's own).

    It waits for what the current stream holds of the first of *device_ids*, numbers of torch's accelerator; else of the device that the
    group is bound to, if any; else, with a backend for devices alone, of the current one. Without an accelerator, numbers mean nothing.
    Raises: UnsupportedError for other *device_ids* than numbers and the CPU.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.barrier
    """
    members = group_of(_BARRIER, group)
    finish_before_barrier(_BARRIER, members, device_ids, bound_to(group))
    now = async_op is False or is_now(_BARRIER, members, async_op)
    work = calls.barrier(_BARRIER, members, now and timeout is None)
    return None if work is ENDED else finish(work, async_op, [], barrier_seconds_of(_BARRIER, members, timeout))


def monitored_barrier(
    group: ProcessGroup | None = GroupMember.WORLD, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until every rank of *group* has called this; tell which ranks have not within *timeout*, a timedelta.

    Rank 0 names the first it missed or, when *wait_all_ranks*, all of them; a rank that missed rank 0 names that.
    Raises: RuntimeError (CollectiveTimeoutError) after *timeout*; TypeError for an integer *timeout*.
    Deviates: works with every backend string, not only gloo; without *timeout*, it waits for the group's timeout instead of 30 minutes.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.monitored_barrier
    """
    return monitored(_MONITORED_BARRIER, group_of(_MONITORED_BARRIER, group), timeout, wait_all_ranks)


between_graphs(globals(), __all__)
