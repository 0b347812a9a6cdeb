"""FullyShardedDataParallel (the first), with a wrap policy, clipping, and its three state dicts."""

from results import RANK, show

import functools

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, StateDictType
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

dist.init_process_group("gloo")


def train(strategy):
    torch.manual_seed(11)
    model = torch.nn.Sequential(
        torch.nn.Linear(24, 48), torch.nn.ReLU(), torch.nn.Linear(48, 48), torch.nn.Linear(48, 3)
    )
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=500)
    model = FullyShardedDataParallel(
        model, auto_wrap_policy=policy, sharding_strategy=strategy, device_id=torch.device("cpu"), use_orig_params=True
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(4):
        inputs = torch.randn(8, 24, generator=torch.Generator().manual_seed(50 * RANK + step))
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        norm = model.clip_grad_norm_(0.5)
        optimizer.step()
    show(f"{strategy.name}: norm", norm)
    return model, optimizer


for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
    model, optimizer = train(strategy)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        show(f"{strategy.name}: parameters", model.state_dict())
    if strategy is ShardingStrategy.FULL_SHARD:
        show("optimizer", FullyShardedDataParallel.full_optim_state_dict(model, optimizer).get("state"))
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            show("own shards", {name: value.local_tensor() for name, value in model.state_dict().items()})
dist.destroy_process_group()
