"""ZeRO's first stage: each rank keeps and updates its part of Adam's state, and the parameters are gathered."""

import numpy as np
import torch
import torch.distributed as dist


class ShardedAdam:
    def __init__(self, parameters: torch.Tensor, rate: float = 0.05):
        self.rank, self.size, self.rate, self.step_count = dist.get_rank(), dist.get_world_size(), rate, 0
        self.length = parameters.numel() // self.size
        self.first = torch.zeros(self.length, dtype=parameters.dtype)
        self.second = torch.zeros(self.length, dtype=parameters.dtype)

    def step(self, parameters: torch.Tensor, slope: torch.Tensor):
        own = torch.empty(self.length, dtype=slope.dtype)
        dist.reduce_scatter_tensor(own, slope)
        own.mul_(1.0 / self.size)
        self.step_count += 1
        self.first = self.first * 0.9 + own * 0.1
        self.second = self.second * 0.999 + torch.square(own) * 0.001
        first = self.first / (1 - 0.9**self.step_count)
        second = self.second / (1 - 0.999**self.step_count)
        part = parameters[self.rank * self.length : (self.rank + 1) * self.length]
        updated = part - self.rate * first / (torch.sqrt(second) + 1e-8)
        dist.all_gather_into_tensor(parameters, updated)


def loss_of(parameters: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.sum(torch.square(parameters - target))


def train():
    dist.init_process_group()
    target = torch.tensor(np.random.default_rng(7 + dist.get_rank()).normal(size=12).astype(np.float32))
    parameters = torch.ones(12)
    optimizer = ShardedAdam(parameters)
    for step in range(8):
        loss = loss_of(parameters, target)
        slope = 2.0 * (parameters - target)
        optimizer.step(parameters, slope)
        dist.all_reduce(loss, op=dist.ReduceOp.SUM)
        print(f"step {step}: loss {loss.item():.8f} norm {torch.norm(parameters).item():.8f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
