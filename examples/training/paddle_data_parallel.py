"""Data-parallel training on PaddlePaddle with paddle.DataParallel. Nothing here knows of another engine.

python3 -m paddle.distributed.launch --nproc_per_node 2 examples/training/paddle_data_parallel.py     # with gloo
shim run -n 2 --as-installed examples/training/paddle_data_parallel.py                                # on shim's engine
"""

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn

STEPS, BATCH = 40, 32


class Network(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, inputs: paddle.Tensor) -> paddle.Tensor:
        return self.layers(inputs)


def part_of_data(rank: int, world_size: int) -> tuple[paddle.Tensor, paddle.Tensor]:
    inputs = np.random.default_rng(1).standard_normal((BATCH * world_size, 8)).astype("float32")
    targets = np.sin(inputs).sum(axis=1, keepdims=True)
    return paddle.to_tensor(inputs[rank::world_size]), paddle.to_tensor(targets[rank::world_size])


def main() -> None:
    paddle.set_device("cpu")
    dist.init_parallel_env()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    paddle.seed(rank)  # every rank begins elsewhere, and is given rank 0's weights
    model = paddle.DataParallel(Network())
    optimizer = paddle.optimizer.Adam(learning_rate=0.01, parameters=model.parameters())
    inputs, targets = part_of_data(rank, world_size)
    halves = zip(inputs.chunk(2), targets.chunk(2), strict=True)
    (first, first_targets), (second, second_targets) = halves
    for step in range(STEPS):
        with model.no_sync():  # gradients of the first half are added up on this rank
            nn.functional.mse_loss(model(first), first_targets).backward()
        loss = nn.functional.mse_loss(model(second), second_targets)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1}: loss {float(total) / world_size:.5f}", flush=True)


if __name__ == "__main__":
    main()
