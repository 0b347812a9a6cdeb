"""Local SGD with compressed updates: each rank takes steps of its own, and the largest changes are sent as indices and values."""

import numpy as np
import torch
import torch.distributed as dist

LENGTH, KEPT = 10, 3


def compressed(change: torch.Tensor):
    _, index = torch.topk(torch.abs(change), KEPT)
    index = index.to(torch.int64)
    return index, torch.gather(change, 0, index)


def average(change: torch.Tensor) -> torch.Tensor:
    size = dist.get_world_size()
    index, values = compressed(change)
    indices = [torch.empty_like(index) for _ in range(size)]
    parts = [torch.empty_like(values) for _ in range(size)]
    dist.all_gather(indices, index)
    dist.all_gather(parts, values)
    total = torch.zeros(LENGTH)
    return total.scatter_add_(0, torch.cat(indices), torch.cat(parts)) / size


def train():
    dist.init_process_group()
    target = torch.tensor(np.random.default_rng(dist.get_rank()).normal(size=LENGTH).astype(np.float32))
    weights = torch.zeros(LENGTH)
    left_over = torch.zeros_like(weights)
    for step in range(6):
        mine = weights.clone()
        for _ in range(3):
            mine.sub_(0.2 * (mine - target))
        change = mine - weights + left_over
        index, values = compressed(change)
        left_over = change.scatter(0, index, torch.zeros_like(values))
        weights = weights + average(change)
        loss = torch.sum(torch.square(weights - target))
        dist.all_reduce(loss)
        print(f"step {step}: loss {loss.item():.7f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
