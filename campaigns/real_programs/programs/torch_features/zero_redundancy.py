"""ZeroRedundancyOptimizer, alone and overlapped with DDP's hook, and its consolidated state."""

from results import RANK, show

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
for as_views in (False, True):
    torch.manual_seed(29)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 40), torch.nn.ReLU(), torch.nn.Linear(40, 40), torch.nn.Linear(40, 2)
    )
    model = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-2, parameters_as_bucket_view=as_views
    )
    for step in range(5):
        inputs = torch.randn(8, 20, generator=torch.Generator().manual_seed(90 * RANK + step))
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    show(f"parameters, views {as_views}", model.module)
    optimizer.consolidate_state_dict(to=0)
    if RANK == 0:
        show(f"state, views {as_views}", optimizer.state_dict()["state"])
    else:
        show(f"own part, views {as_views}", [len(group["params"]) for group in optimizer.optim.param_groups])
dist.destroy_process_group()
