"""Data-parallel training on PaddlePaddle with paddle.Model. Nothing here knows of another engine.

python3 -m paddle.distributed.launch --nproc_per_node 2 examples/training/paddle_model.py     # with gloo
shim run -n 2 --as-installed examples/training/paddle_model.py                                # on shim's engine
"""

from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn

EPOCHS, ROWS, BATCH = 20, 256, 32


class Sines(paddle.io.Dataset):
    def __init__(self) -> None:
        self.inputs = np.random.default_rng(1).standard_normal((ROWS, 8)).astype("float32")

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return self.inputs[index], np.sin(self.inputs[index]).sum(keepdims=True)


class Losses(paddle.callbacks.Callback):
    """Prints the mean of the last batches' losses over the ranks."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        total = paddle.to_tensor(logs["loss"])
        dist.all_reduce(total)
        if dist.get_rank() == 0 and epoch % 5 == 4:
            print(f"step {epoch + 1}: loss {total.item() / dist.get_world_size():.5f}", flush=True)


def main() -> None:
    paddle.set_device("cpu")
    paddle.seed(dist.get_rank())  # every rank begins elsewhere, and is given rank 0's weights
    network = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    model = paddle.Model(network)
    optimizer = paddle.optimizer.Adam(learning_rate=0.01, parameters=network.parameters())
    model.prepare(optimizer, nn.MSELoss())
    model.fit(Sines(), batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[Losses()])


if __name__ == "__main__":
    main()
