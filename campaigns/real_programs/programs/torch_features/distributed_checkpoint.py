"""torch.distributed.checkpoint: save an FSDP2 model and its optimizer, load them in another sharding, and save in the background."""

from results import RANK, show

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

dist.init_process_group("cpu:gloo")
mesh = init_device_mesh("cpu", (2,))
folder = os.environ.get("REAL_PROGRAMS_RESULTS", ".") + "/checkpoint"


def network(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(10, 21), torch.nn.ReLU(), torch.nn.Linear(21, 5))
    return fully_shard(model, mesh=mesh)


model = network(43)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
model(torch.randn(4, 10) + RANK).sum().backward()
optimizer.step()
states = get_state_dict(model, optimizer)
checkpoint.save({"model": states[0], "optimizer": states[1]}, checkpoint_id=folder)
show("saved", [parameter.full_tensor() for parameter in model.parameters()])

other = network(44)
other_optimizer = torch.optim.Adam(other.parameters(), lr=1e-2)
states = get_state_dict(other, other_optimizer)
loaded = {"model": states[0], "optimizer": states[1]}
checkpoint.load(loaded, checkpoint_id=folder)
set_state_dict(other, other_optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
show("loaded", [parameter.full_tensor() for parameter in other.parameters()])

columns = {"model": {"0.weight": distribute_tensor(torch.zeros(21, 10), mesh, [Shard(1)])}}
checkpoint.load(columns, checkpoint_id=folder)
show("in columns", [columns["model"]["0.weight"].to_local(), columns["model"]["0.weight"].full_tensor()])
saving = checkpoint.async_save({"model": loaded["model"]}, checkpoint_id=folder + "-later")
saving.result()
dist.barrier()
show("files", sorted(name for name in os.listdir(folder + "-later")))
dist.destroy_process_group()
