"""The collectives of Python objects, at torch's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import objects
from shim.core.pickles import PICKLES
from shim.frontends.torch._calls.arguments import peer_of, root_of, source_of, told
from shim.frontends.torch._calls.devices import check_device
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._objects import (
    check_one_slot,
    check_use_batch,
    fill,
    gather_into_slots,
    objects_at_root,
    objects_for_all,
    slots_at_root,
    some_objects,
)
from shim.frontends.torch._restricted_objects import WEIGHTS, format_of

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]

_ALL_GATHER_OBJECT = torch_function("all_gather_object", output="object_list", input="obj")
_GATHER_OBJECT = torch_function("gather_object", output="object_gather_list", input="obj", root="dst")
_BROADCAST = torch_function("broadcast_object_list", output="object_list", input="object_list", root="src")
_SCATTER = torch_function(
    "scatter_object_list", output="scatter_object_output_list", input="scatter_object_input_list", root="src"
)
_SEND = torch_function("send_object_list", input="object_list", root="dst", peer="dst")
_RECV = torch_function("recv_object_list", output="object_list", root="src", peer="src")


def all_gather_object(
    object_list: list[Any], obj: Any, group: ProcessGroup | None = None, weights_only: bool = False
) -> None:
    """Pickle every rank's *obj* and put all of them into the first slots of *object_list*; *weights_only* (docs/objects.md) on all ranks alike.

    Raises: IndexError when *object_list* has fewer slots than *group* has ranks, before anything is sent.
    Raises: UnpicklingError with *weights_only* for what is neither plain data nor torch's tensors.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.all_gather_object
    """
    gather_into_slots(_ALL_GATHER_OBJECT, group_of(_ALL_GATHER_OBJECT, group), object_list, obj, weights_only)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Pickle every rank's *obj* into the first slots of *object_gather_list* on *dst* or *group_dst*.

    *dst* is a rank of the world, *group_dst* of *group*; neither means the world's rank 0. *weights_only* is as in all_gather_object.
    Raises: ValueError when *object_gather_list* is missing there or given elsewhere; IndexError when it is too short.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.gather_object
    """
    members = group_of(_GATHER_OBJECT, group)
    root = root_of(_GATHER_OBJECT, members, dst, group_dst, 0)
    slots = slots_at_root(_GATHER_OBJECT, members, object_gather_list, root)
    form = format_of(_GATHER_OBJECT, members, weights_only)
    fill(slots, objects.gather(_GATHER_OBJECT, members, obj, root, form))


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Replace the objects in *object_list* by copies of those of *src* or *group_src*.

    *src* is a rank of the world, *group_src* of *group*; neither means the world's rank 0. *weights_only* is as in all_gather_object.
    Raises: ValueError for an empty list; MismatchError when the lists differ in length.
    Objects are in host memory, whatever *device* says. Raises: UnsupportedError for one that is neither the CPU nor torch's accelerator.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.broadcast_object_list
    """
    members = group_of(_BROADCAST, group)
    told(_BROADCAST, members, check_device, "device", device)
    root = root_of(_BROADCAST, members, src, group_src, 0)
    given = objects_at_root(_BROADCAST, members, object_list, root)
    received = objects.broadcast(_BROADCAST, members, given, root, format_of(_BROADCAST, members, weights_only))
    fill(None if members.rank == root else given, received)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Put the rank's place in *src*'s *scatter_object_input_list* into slot 0 of *scatter_object_output_list*; *weights_only* is as in all_gather_object.

    The root is the world's rank *src* or *group*'s *group_src*, by default the world's rank 0; other ranks' input is not read.
    Raises: ValueError when the root has no list, or not an object for each rank, or there is no slot.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.scatter_object_list
    """
    members = group_of(_SCATTER, group)
    root = root_of(_SCATTER, members, src, group_src, 0)
    check_one_slot(_SCATTER, members, scatter_object_output_list)
    given = objects_for_all(_SCATTER, members, scatter_object_input_list, root)
    received = objects.scatter(_SCATTER, members, given, root, format_of(_SCATTER, members, weights_only))
    fill(scatter_object_output_list, None if members.rank < 0 else [received])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Pickle and send *object_list* to *dst* or *group_dst*; *weights_only* is as in all_gather_object.

    *dst* is a rank of the world, *group_dst* of *group*; *use_batch* is about connections, of which none are made.
    Raises: ValueError for an empty list or the caller's own rank; UnsupportedError for a *device* but the CPU and torch's accelerator.
    Deviates: outside the group it warns and returns None; torch 2.13 raises AttributeError.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.send_object_list
    """
    check_use_batch(_SEND, use_batch)
    given = list(object_list) if isinstance(object_list, Sequence) else object_list
    members = group_of(_SEND, group)
    check_device(_SEND, "device", device)
    peer = peer_of(_SEND, members, dst, group_dst)
    several = some_objects(_SEND, members, "input", given)
    objects.send(_SEND, members, several, peer, form=WEIGHTS if weights_only else PICKLES)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Receive as many objects as *object_list* holds into it, from *src* or *group_src*, which has the same *weights_only*; return the world's rank.

    *src* is a rank of the world, *group_src* of *group*; *use_batch* changes nothing that can be seen.
    Raises: ValueError for an empty list or the caller's own rank; UnsupportedError for a *device* but the CPU and torch's accelerator.
    Deviates: as documented, receives from any rank if neither *src* nor *group_src* is given, and returns -1 outside the group.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.recv_object_list
    """
    check_use_batch(_RECV, use_batch)
    members = group_of(_RECV, group)
    check_device(_RECV, "device", device)
    peer = source_of(_RECV, members, src, group_src)
    slots = some_objects(_RECV, members, "output", object_list)
    received = objects.receive(_RECV, members, len(slots), peer, form=WEIGHTS if weights_only else PICKLES)
    fill(slots, None if received is None else received.items)
    return -1 if received is None else members.world_rank(received.source)


between_graphs(globals(), __all__)
