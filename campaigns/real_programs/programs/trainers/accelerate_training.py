"""accelerate: a training loop with accumulation, clipping, gathered metrics, a saved and loaded state, and FSDP2 by its plugin."""

from results import RANK, show

import os

import accelerate
import torch
from accelerate.utils import FullyShardedDataParallelPlugin, broadcast_object_list, gather_object, set_seed
from torch.utils.data import DataLoader, TensorDataset

plugin = None
for name in ("DDP", "FSDP2"):
    if name == "FSDP2":
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=False)
        plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="size_based_wrap", min_num_params=100)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2, fsdp_plugin=plugin)
    set_seed(7)
    inputs = torch.randn(44, 8)
    data = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for epoch in range(2):
        for batch, target in data:
            with accelerator.accumulate(model):
                output = model(batch)
                loss = torch.nn.functional.mse_loss(output, target)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        gathered = accelerator.gather_for_metrics(output.detach())
        show(f"{name}, epoch {epoch}", [accelerator.reduce(loss.detach(), "mean"), gathered])
    show(f"{name}, state", accelerator.get_state_dict(model))
    if name == "DDP":
        folder = os.environ["REAL_PROGRAMS_RESULTS"] + "/state"
        accelerator.save_state(folder)
        accelerator.wait_for_everyone()
        accelerator.load_state(folder)
show("objects", [gather_object([{"rank": RANK}]), broadcast_object_list([RANK, "x"], from_process=1)])
accelerator.end_training()
