"""A small piece of distributed code, written for torch, as a user's project has it."""

from __future__ import annotations

import torch
import torch.distributed as dist


def average_gradients(model: torch.nn.Module) -> None:
    """Replace each gradient of *model* by its mean over all ranks."""
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
            parameter.grad /= dist.get_world_size()


def shard(rows: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of *rows*, which rank 0 has; the first ranks get one row more where they do not fit."""
    rank, size = dist.get_rank(), dist.get_world_size()
    count = torch.tensor([len(rows)])
    dist.broadcast(count, 0)
    total = int(count)
    lengths = [total // size + (part < total % size) for part in range(size)]
    mine = rows.new_empty((lengths[rank], *rows.shape[1:]))
    if rank == 0:
        parts = list(rows.split(lengths))
        requests = [dist.isend(part.contiguous(), other) for other, part in enumerate(parts) if other]
        mine.copy_(parts[0])
        for request in requests:
            request.wait()
    else:
        dist.recv(mine, 0)
    return mine
