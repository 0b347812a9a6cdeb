"""k-means of points that are spread over the ranks."""

import numpy as np
import torch
import torch.distributed as dist

CLUSTERS = 3


def nearest(points: torch.Tensor, centres: torch.Tensor):
    distances = torch.sum(torch.square(points.unsqueeze(1) - centres.unsqueeze(0)), dim=-1)
    closest, index = torch.min(distances, dim=1)
    return index, torch.sum(closest)


def moved(points: torch.Tensor, index: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    sums = torch.scatter_add(torch.zeros_like(centres), 0, index.unsqueeze(1).expand(-1, points.shape[1]), points)
    counts = torch.bincount(index, minlength=CLUSTERS).float()
    dist.all_reduce(sums)
    dist.all_reduce(counts)
    return torch.where(counts.unsqueeze(1) > 0, sums / torch.clamp(counts, min=1.0).unsqueeze(1), centres)


def train():
    dist.init_process_group()
    rank = dist.get_rank()
    points = torch.tensor(np.random.default_rng(rank).normal(size=(30, 2)).astype(np.float32) + 2 * (rank % 2))
    centres = points[:CLUSTERS].clone()
    dist.broadcast(centres, 0)
    for step in range(5):
        index, loss = nearest(points, centres)
        centres = moved(points, index, centres)
        dist.all_reduce(loss)
        numbers = centres.flatten()
        spread, _ = torch.sort(numbers)
        print(f"step {step}: loss {loss.item():.6f} largest {spread[-1].item():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
