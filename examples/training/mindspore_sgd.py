"""Data-parallel SGD on MindSpore, with the collectives written out. Nothing here knows of another engine.

msrun --worker_num 2 --local_worker_num 2 --join True examples/training/mindspore_sgd.py    # with MindSpore's own
shim run -n 2 --as-installed examples/training/mindspore_sgd.py                             # on shim's engine
"""

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init

STEPS, BATCH = 40, 32


def part_of_data(rank: int, world_size: int) -> tuple[ms.Tensor, ms.Tensor]:
    inputs = np.random.default_rng(1).standard_normal((BATCH * world_size, 8)).astype("float32")
    targets = np.sin(inputs).sum(axis=1, keepdims=True)
    return ms.Tensor(inputs[rank::world_size]), ms.Tensor(targets[rank::world_size])


def main() -> None:
    ms.set_device("CPU")
    init()
    rank, world_size = get_rank(), get_group_size()
    total = ops.AllReduce(ops.ReduceOp.SUM)
    ms.set_seed(rank + 1)  # every rank begins elsewhere, and is given rank 0's weights
    model = nn.SequentialCell(nn.Dense(8, 32), nn.Tanh(), nn.Dense(32, 1))
    for parameter in model.trainable_params():
        parameter.set_data(ops.Broadcast(0)((parameter.value(),))[0])
    optimizer = nn.SGD(model.trainable_params(), learning_rate=0.05)
    inputs, targets = part_of_data(rank, world_size)
    loss_of = nn.MSELoss()
    value_and_grad = ms.value_and_grad(lambda x, y: loss_of(model(x), y), None, optimizer.parameters)
    for step in range(STEPS):
        loss, gradients = value_and_grad(inputs, targets)
        optimizer(tuple(total(gradient) / world_size for gradient in gradients))
        mean = total(loss.reshape(1)) / world_size
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1}: loss {float(mean.asnumpy()[0]):.5f}", flush=True)


if __name__ == "__main__":
    main()
