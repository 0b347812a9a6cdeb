"""MONAI: evenly_divisible_all_gather of uneven tensors, strings, its DistributedSampler, PartitionDataset and metrics of all ranks."""

from results import RANK, WORLD_SIZE, show

import torch
import torch.distributed as dist
from monai.data import DistributedSampler, DistributedWeightedRandomSampler, partition_dataset
from monai.metrics import DiceMetric
from monai.utils import evenly_divisible_all_gather, string_list_all_gather

dist.init_process_group("gloo")
own = torch.arange(2.0 + 3 * RANK).reshape(-1, 1) + 10 * RANK
show("gathered", evenly_divisible_all_gather(own, concat=True))
show("strings", string_list_all_gather([f"case {RANK}.{number}" for number in range(RANK + 1)]))
sampler = DistributedSampler(list(range(11)), even_divisible=False, shuffle=True, num_replicas=WORLD_SIZE, rank=RANK)
show("sampled", list(sampler))
weighted = DistributedWeightedRandomSampler(
    list(range(10)), weights=[1.0] * 10, even_divisible=True, generator=torch.Generator().manual_seed(1)
)
show("weighted", list(weighted))
show("part", partition_dataset(list(range(9)), num_partitions=WORLD_SIZE, shuffle=True, seed=2)[RANK])
dice = DiceMetric(include_background=True, reduction="mean_batch")
generator = torch.Generator().manual_seed(RANK)
for _ in range(1 + RANK):
    dice(torch.rand(2, 3, 8, 8, generator=generator).round(), torch.rand(2, 3, 8, 8, generator=generator).round())
show("dice", dice.aggregate())
dist.destroy_process_group()
