"""fully_shard (FSDP2): mixed precision, accumulation, clipping, an optimizer on DTensors, the full state dict."""

from results import RANK, show

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))


def train(name, **options):
    torch.manual_seed(13)
    model = torch.nn.Sequential(
        *(torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True) for _ in range(2))
    )
    for layer in model:
        fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(4):
        inputs = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(70 * RANK + step))
        model.set_requires_gradient_sync(step % 2 == 1)
        model(inputs).float().square().mean().backward()
        if step % 2 == 1:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
    show(f"{name}: norm", norm.full_tensor())
    show(f"{name}: own shards", [parameter.to_local() for parameter in model.parameters()])
    states = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    show(f"{name}: state", states[0])
    show(f"{name}: optimizer", states[1].get("state", {}))


train("float32")
train("bfloat16", mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
train("kept after forward", reshard_after_forward=False)
dist.destroy_process_group()
