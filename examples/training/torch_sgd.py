"""Data-parallel SGD on PyTorch, with the collectives written out. Nothing here knows of another engine.

torchrun --nproc-per-node 2 examples/training/torch_sgd.py      # with gloo
shim run -n 2 --as-installed examples/training/torch_sgd.py     # the same program on shim's engine
"""

import torch
import torch.distributed as dist
from torch import nn

STEPS, BATCH = 40, 32


def part_of_data(rank: int, world_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(BATCH * world_size, 8, generator=generator)
    targets = torch.sin(inputs).sum(dim=1, keepdim=True)
    return inputs[rank::world_size], targets[rank::world_size]


def main() -> None:
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # every rank begins elsewhere, and is given rank 0's weights
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs, targets = part_of_data(rank, world_size)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        works = [dist.all_reduce(grad, op=torch.distributed.ReduceOp.SUM, async_op=True) for grad in gradients]
        for work in works:
            work.wait()
        for grad in gradients:
            grad /= world_size
        optimizer.step()
        mean = loss.detach().clone()
        dist.reduce(mean, dst=0)
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1}: loss {mean.item() / world_size:.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
