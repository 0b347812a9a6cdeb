"""torchsnapshot: take and restore a snapshot of a DDP model, its optimizer and a counter; replicated and own entries; async_take."""

from results import RANK, show

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torchsnapshot import RNGState, Snapshot, StateDict

dist.init_process_group("gloo")
folder = os.environ["REAL_PROGRAMS_RESULTS"]
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.Linear(20, 2)))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
model(torch.randn(4, 10) + RANK).sum().backward()
optimizer.step()
progress = StateDict(steps=1, own=torch.full((3,), float(RANK)))
state = {"model": model, "optimizer": optimizer, "progress": progress, "random": RNGState()}
snapshot = Snapshot.take(f"{folder}/first", state, replicated=["model/**"])
show("manifest", sorted(snapshot.get_manifest()))
expected = torch.rand(2)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.zero_()
progress["steps"], progress["own"] = 0, torch.zeros(3)
snapshot.restore(state)
show("restored", model.module)
show("progress", [progress["steps"], progress["own"]])
show("the same random numbers", torch.equal(torch.rand(2), expected))
pending = Snapshot.async_take(f"{folder}/second", {"progress": progress})
show("in the background", sorted(pending.wait().get_manifest()))
dist.destroy_process_group()
