# mypy: ignore-errors  # most of what it calls has no types in torch
"""Checkpoints, and the state that they keep: functions for ``parallel_features``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.utils.data
from feature_parts import feature, net, train, weights
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

_CPU = torch.device("cpu")


def shared_folder() -> Path:
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    return Path(str(folder[0]))


@feature
def distributed_checkpoint(rank: int, size: int) -> list[Any]:
    folder, model = shared_folder(), net()
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train(model, rank, optimizer)
    kept = weights(model)
    dcp.save(dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True)), checkpoint_id=folder)
    train(model, rank, optimizer)
    state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return [kept, weights(model), kept == weights(model), train(model, rank, optimizer)]


@feature
def asynchronous_checkpoint(rank: int, size: int) -> list[Any]:
    folder = shared_folder()
    mesh = init_device_mesh("cpu", (size,))
    state = {"sharded": distribute_tensor(torch.arange(8.0), mesh, [Shard(0)]), "plain": torch.ones(3)}
    dcp.async_save(state, checkpoint_id=folder, process_group=dist.new_group(backend="gloo")).result()
    empty = {"sharded": distribute_tensor(torch.zeros(8), mesh, [Shard(0)]), "plain": torch.zeros(3)}
    dcp.load(empty, checkpoint_id=folder)
    return [empty["sharded"], empty["plain"]]


@feature
def full_state_dict(rank: int, size: int) -> list[Any]:
    model = net()
    fully_shard(model)
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    return [sorted(state), *state.values()]
