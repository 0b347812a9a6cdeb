"""Data-parallel training on PaddlePaddle with paddle.DataParallel. Nothing here knows of another engine.

python3 -m paddle.distributed.launch --nproc_per_node 2 examples/training/paddle_data_parallel.py     # with gloo
shim run -n 2 --as-installed examples/training/paddle_data_parallel.py                                # on shim's engine
"""

from contextlib import nullcontext

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.io import DataLoader, Dataset, DistributedBatchSampler

EPOCHS, ROWS, BATCH = 20, 256, 32


class Network(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, inputs: paddle.Tensor) -> paddle.Tensor:
        return self.layers(inputs)


class Sines(Dataset):
    def __init__(self) -> None:
        self.inputs = np.random.default_rng(1).standard_normal((ROWS, 8)).astype("float32")

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return self.inputs[index], np.sin(self.inputs[index]).sum(keepdims=True)


def main() -> None:
    paddle.set_device("cpu")
    dist.init_parallel_env()
    paddle.seed(dist.get_rank())  # every rank begins elsewhere, and is given rank 0's weights
    model = paddle.DataParallel(Network())
    optimizer = paddle.optimizer.Adam(learning_rate=0.01, parameters=model.parameters())
    data = Sines()
    loader = DataLoader(data, batch_sampler=DistributedBatchSampler(data, BATCH))
    for epoch in range(EPOCHS):
        total = paddle.zeros([1])
        for index, (inputs, targets) in enumerate(loader):
            is_last = index % 2 == 1  # two batches for a step: the gradients of the first are added up on this rank
            with nullcontext() if is_last else model.no_sync():
                loss = nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
            total += loss.detach()
            if not is_last:
                continue
            optimizer.step()
            optimizer.clear_grad()
        dist.all_reduce(total)
        if dist.get_rank() == 0 and epoch % 5 == 4:
            print(f"step {epoch + 1}: loss {total.item() / len(loader) / dist.get_world_size():.5f}", flush=True)


if __name__ == "__main__":
    main()
