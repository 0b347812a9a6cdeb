"""Data-parallel SGD on PaddlePaddle, with the collectives written out. Nothing here knows of another engine.

python3 -m paddle.distributed.launch --nproc_per_node 2 examples/training/paddle_sgd.py     # with gloo
shim run -n 2 --as-installed examples/training/paddle_sgd.py                                # on shim's engine
"""

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn

STEPS, BATCH = 40, 32


def part_of_data(rank: int, world_size: int) -> tuple[paddle.Tensor, paddle.Tensor]:
    inputs = np.random.default_rng(1).standard_normal((BATCH * world_size, 8)).astype("float32")
    targets = np.sin(inputs).sum(axis=1, keepdims=True)
    return paddle.to_tensor(inputs[rank::world_size]), paddle.to_tensor(targets[rank::world_size])


def main() -> None:
    paddle.set_device("cpu")
    dist.init_parallel_env()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    paddle.seed(rank)  # every rank begins elsewhere, and is given rank 0's weights
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    for parameter in model.parameters():
        dist.broadcast(parameter, src=0)
    optimizer = paddle.optimizer.SGD(learning_rate=0.05, parameters=model.parameters())
    inputs, targets = part_of_data(rank, world_size)
    for step in range(STEPS):
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
            parameter.grad.set_value(parameter.grad / world_size)
        optimizer.step()
        optimizer.clear_grad()
        losses = []
        paddle.distributed.all_gather(losses, loss.detach().reshape([1]))
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1}: loss {sum(each.item() for each in losses) / world_size:.5f}", flush=True)


if __name__ == "__main__":
    main()
