"""timm: reduce_tensor, distribute_bn, an averaged model and mixup in a training loop of DDP."""

from results import RANK, WORLD_SIZE, show

import timm
import torch
import torch.distributed as dist
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3, distribute_bn, reduce_tensor
from timm.utils.distributed import init_distributed_device_so
from torch.nn.parallel import DistributedDataParallel

show("device", {name: str(value) for name, value in init_distributed_device_so("cpu", dist_backend="gloo").items()})
torch.manual_seed(1)
plain = timm.create_model("test_resnet", num_classes=10)
model, average = DistributedDataParallel(plain), ModelEmaV3(plain, decay=0.9)
optimizer = create_optimizer_v2(plain, opt="lamb", lr=1e-2)
for step in range(2):
    inputs = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(RANK + 30 * step))
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(plain)
    show(f"loss {step}", [loss, reduce_tensor(loss.detach(), WORLD_SIZE)])
distribute_bn(plain, WORLD_SIZE, reduce=True)
show("reduced buffers", dict(plain.named_buffers()))
distribute_bn(average.module, WORLD_SIZE, reduce=False)
show("broadcast buffers", dict(average.module.named_buffers()))
show("parameters", plain)
dist.destroy_process_group()
