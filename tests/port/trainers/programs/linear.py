"""A line is fitted to points by gradients that are averaged over the ranks."""

import numpy as np
import torch
import torch.distributed as dist


def points(rank: int):
    generator = np.random.default_rng(rank)
    inputs = generator.normal(size=(16, 3)).astype(np.float32)
    return torch.tensor(inputs), torch.tensor(inputs @ np.array([[1.0], [-2.0], [0.5]], dtype=np.float32))


def gradient(weights: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor):
    error = torch.matmul(inputs, weights) - targets
    return torch.matmul(inputs.t(), error) * (2.0 / inputs.shape[0]), torch.mean(torch.square(error))


def train():
    dist.init_process_group()
    inputs, targets = points(dist.get_rank())
    weights = torch.zeros(3, 1)
    for step in range(10):
        slope, loss = gradient(weights, inputs, targets)
        for each in (slope, loss):
            dist.all_reduce(each)
            each.div_(dist.get_world_size())
        weights = weights - 0.1 * slope
        print(f"step {step}: loss {loss.item():.8f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
