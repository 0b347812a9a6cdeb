"""The names of ``torch.distributed.collective_utils``: objects shared between ranks, whose failures all ranks hear of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._objects import SyncPayload, all_gather_of_type, all_gather_stage, broadcast_stage

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]

_BROADCAST = torch_function("collective_utils.broadcast", input="data_or_fn", root="rank", group="pg")
_ALL_GATHER = torch_function("collective_utils.all_gather", input="data_or_fn", group="pg")
_ENFORCE_TYPE = torch_function(
    "collective_utils.all_gather_object_enforce_type", output="object_list", input="obj", group="pg"
)


def broadcast(
    data_or_fn: Any,
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: ProcessGroup | None = None,
) -> Any:
    """Return the *data_or_fn* of *pg*'s *rank*, or what it returns when called there, on every rank (None: this process).

    *stage_name* says in messages what is being done.
    Raises: RuntimeError on every rank when the call raises, or *rank* gives False for *success*.
    Deviates: *rank* is a rank in *pg*; torch 2.13 takes it for one of the world too, and fails where they differ.
    See: https://github.com/pytorch/pytorch/blob/v2.15.0/torch/distributed/collective_utils.py
    """
    return broadcast_stage(_BROADCAST, data_or_fn, success, stage_name, rank, pg)


def all_gather(data_or_fn: Any, stage_name: str | None = None, pg: ProcessGroup | None = None) -> list[Any]:
    """Return every rank's *data_or_fn*, or what it returns when called, in the order of the ranks of *pg* (None: one).

    Raises: RuntimeError on every rank when a call raises, or *stage_name* differs.
    Deviates: torch 2.13 ends in a TypeError in the first case, and leaves the differing ranks out in the second.
    See: https://github.com/pytorch/pytorch/blob/v2.15.0/torch/distributed/collective_utils.py
    """
    return all_gather_stage(_ALL_GATHER, data_or_fn, stage_name, pg)


def all_gather_object_enforce_type(
    pg: ProcessGroup,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """Put every rank's *obj* in *pg* into *object_list*; *type_checker* must find each to be of the first one's type.

    Raises: TypeError on every rank, after the objects are in the list.
    See: https://github.com/pytorch/pytorch/blob/v2.15.0/torch/distributed/collective_utils.py
    """
    return all_gather_of_type(_ENFORCE_TYPE, pg, object_list, obj, type_checker)


between_graphs(globals(), __all__)
