"""DeviceMesh and DTensor: distribution, redistribution between all placements, and operations on sharded tensors."""

from results import RANK, show

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, empty, ones, zeros

mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("x",))
show("mesh", [mesh.get_local_rank(), mesh.size(), mesh.mesh_dim_names])
torch.manual_seed(17)
whole = torch.randn(7, 6)
for first in (Shard(0), Shard(1), Replicate(), Partial()):
    for second in (Shard(0), Shard(1), Replicate()):
        if isinstance(first, Partial):
            given = DTensor.from_local(whole * (RANK + 1), mesh, [first])
        else:
            given = distribute_tensor(whole, mesh, [first])
        moved = given.redistribute(mesh, [second])
        show(f"{first} to {second}", [moved.to_local(), moved.full_tensor()])

left, right = distribute_tensor(whole, mesh, [Shard(0)]), distribute_tensor(whole.T.contiguous(), mesh, [Shard(0)])
show("matmul", (left @ right).full_tensor())
show("sum", left.sum().full_tensor())
show("softmax", torch.softmax(left, 0).full_tensor())
show("max", left.max(0)[0].full_tensor())
show("layer norm", torch.nn.functional.layer_norm(left, [6]).full_tensor())
show("factories", [(ones(4, 4, device_mesh=mesh, placements=[Shard(1)]) + zeros(4, 4, device_mesh=mesh)).full_tensor()])
show("empty", list(empty(4, 4, device_mesh=mesh, placements=[Shard(1)]).to_local().shape))
weight = distribute_tensor(torch.randn(6, 6), mesh, [Shard(1)]).requires_grad_()
(left @ weight).square().sum().backward()
show("gradient", weight.grad.full_tensor())
dist.destroy_process_group()
