"""Lightning Fabric: a DDP loop with accumulation, all_gather, all_reduce, broadcast, barrier, and a checkpoint."""

from results import RANK, show

import os

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
fabric.launch()
fabric.seed_everything(3)
inputs = torch.randn(42, 6)
data = fabric.setup_dataloaders(
    DataLoader(TensorDataset(inputs, inputs.mean(1, keepdim=True)), batch_size=4, shuffle=True)
)
with fabric.init_module():
    model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1))
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
for number, (batch, target) in enumerate(data):
    accumulating = number % 2 == 0
    with fabric.no_backward_sync(model, enabled=accumulating):
        loss = torch.nn.functional.mse_loss(model(batch), target)
        fabric.backward(loss)
    if not accumulating:
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
    show(f"loss {number}", fabric.all_reduce(loss.detach(), reduce_op="mean"))
show("gathered", fabric.all_gather({"rank": torch.tensor(RANK), "loss": loss.detach()}))
show("broadcast", fabric.broadcast({"from": RANK}, src=1))
file = os.environ["REAL_PROGRAMS_RESULTS"] + "/fabric.ckpt"
fabric.save(file, {"model": model, "optimizer": optimizer, "step": 5})
state = {"model": model, "optimizer": optimizer, "step": 0}
fabric.load(file, state)
show("parameters", model.module)
show("step", state["step"])
with fabric.rank_zero_first():
    show("in turns", fabric.global_rank)
