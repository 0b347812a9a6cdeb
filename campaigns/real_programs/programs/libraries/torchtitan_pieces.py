"""torchtitan: ParallelDims' meshes, distributed sums, the clipping of gradients across meshes and seeds for each rank."""

from results import RANK, show

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torchtitan.distributed import ParallelDims, parallel_dims
from torchtitan.distributed import utils as titan

parallel_dims.device_type = "cpu"  # where there is no accelerator, it takes CUDA for one
dist.init_process_group("gloo")
dims = ParallelDims(dp_replicate=1, dp_shard=2, cp=1, tp=1, pp=1, ep=1, world_size=2)
mesh = dims.build_mesh()
show("mesh", [dims.dp_enabled, dims.fsdp_enabled, mesh.size()])
world = dims.get_mesh("dp_shard")
show("sum", titan.dist_sum(torch.tensor(1.5 + RANK), world))
show("mean", titan.dist_mean(torch.tensor(1.5 + RANK), world))
show("max", titan.dist_max(torch.tensor(1.5 + RANK), world))
torch.manual_seed(2)
model = fully_shard(torch.nn.Linear(6, 6), mesh=world)
(model(torch.ones(2, 6)) * (RANK + 5)).sum().backward()
show("norm", titan.clip_grad_norm_(list(model.parameters()), 1.0))
show("clipped", [parameter.grad.full_tensor() for parameter in model.parameters()])
dist.destroy_process_group()
