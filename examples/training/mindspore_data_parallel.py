"""Data-parallel training on MindSpore in its data-parallel mode, with Model and Momentum. Nothing here knows of another engine.

msrun --worker_num 2 --local_worker_num 2 --join True examples/training/mindspore_data_parallel.py    # with MindSpore's own
shim run -n 2 --as-installed examples/training/mindspore_data_parallel.py                             # on shim's engine
"""

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.dataset import NumpySlicesDataset
from mindspore.train import Callback, Model

EPOCHS, ROWS, BATCH = 20, 256, 32


class Losses(Callback):
    """Prints the mean of the last batches' losses over the ranks."""

    def on_train_epoch_end(self, run_context: ms.train.RunContext) -> None:
        state = run_context.original_args()
        total = ops.AllReduce(ops.ReduceOp.SUM)(state.net_outputs.reshape(1))
        if get_rank() == 0 and state.cur_epoch_num % 5 == 0:
            print(f"step {state.cur_epoch_num}: loss {float(total.asnumpy()[0]) / get_group_size():.5f}", flush=True)


def main() -> None:
    ms.set_device("CPU")
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    draw = np.random.default_rng(1)  # every rank begins with the same weights
    weights = [ms.Tensor(draw.uniform(-0.35, 0.35, shape).astype("float32")) for shape in ((32, 8), (1, 32))]
    model = nn.SequentialCell(nn.Dense(8, 32, weights[0], "zeros"), nn.Tanh(), nn.Dense(32, 1, weights[1], "zeros"))
    inputs = draw.standard_normal((ROWS, 8)).astype("float32")
    columns = {"inputs": inputs, "targets": np.sin(inputs).sum(axis=1, keepdims=True)}
    data = NumpySlicesDataset(columns, shuffle=False, num_shards=get_group_size(), shard_id=get_rank()).batch(BATCH)
    optimizer = nn.Momentum(model.trainable_params(), learning_rate=0.02, momentum=0.9)
    Model(model, nn.MSELoss(), optimizer).train(EPOCHS, data, callbacks=[Losses()])


if __name__ == "__main__":
    main()
