"""Data-parallel training on PaddlePaddle with fleet. Nothing here knows of another engine.

python3 -m paddle.distributed.launch --nproc_per_node 2 examples/training/paddle_fleet.py     # with gloo
shim run -n 2 --as-installed examples/training/paddle_fleet.py                                # on shim's engine
"""

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.distributed import fleet

STEPS, BATCH = 20, 64


def main() -> None:
    paddle.set_device("cpu")
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": 2}
    fleet.init(is_collective=True, strategy=strategy)
    paddle.seed(fleet.worker_index())  # every rank begins elsewhere, and is given rank 0's weights
    network = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    clip = nn.ClipGradByGlobalNorm(1.0)
    inner = paddle.optimizer.Momentum(learning_rate=0.05, parameters=network.parameters(), grad_clip=clip)
    optimizer = fleet.distributed_optimizer(inner)
    model = fleet.distributed_model(network)
    inputs = np.random.default_rng(fleet.worker_index()).standard_normal((BATCH, 8)).astype("float32")
    targets = paddle.to_tensor(np.sin(inputs).sum(axis=1, keepdims=True))
    for step in range(STEPS):
        loss = nn.functional.mse_loss(model(paddle.to_tensor(inputs)), targets)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        total = loss.detach()
        dist.all_reduce(total)
        if fleet.is_first_worker() and step % 5 == 4:
            print(f"step {step + 1}: loss {total.item() / fleet.worker_num():.5f}", flush=True)


if __name__ == "__main__":
    main()
