"""TorchRec on CPUs: DistributedModelParallel with embedding tables sharded by table and by column, or kept on all ranks, and sparse features on each rank."""

from results import RANK, WORLD_SIZE, show

import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ShardingType

dist.init_process_group("gloo")
kinds = {
    "by_table": ShardingType.TABLE_WISE,
    "on_all": ShardingType.DATA_PARALLEL,
    "by_column": ShardingType.COLUMN_WISE,
}
torch.manual_seed(2)
tables = [
    EmbeddingBagConfig(name=name, embedding_dim=64, num_embeddings=20, feature_names=[f"of_{name}"]) for name in kinds
]
constraints = {name: ParameterConstraints(sharding_types=[kind.value]) for name, kind in kinds.items()}
planner = EmbeddingShardingPlanner(topology=Topology(WORLD_SIZE, "cpu"), constraints=constraints)
bags = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
plan = planner.collective_plan(bags, [EmbeddingBagCollectionSharder()], dist.group.WORLD)
model = DistributedModelParallel(
    bags, device=torch.device("cpu"), plan=plan, sharders=[EmbeddingBagCollectionSharder()]
)
for value in model.state_dict().values():
    is_sharded = hasattr(value, "local_shards")
    shards = (
        [(one.tensor, one.metadata.shard_offsets) for one in value.local_shards()] if is_sharded else [(value, (0, 0))]
    )
    for tensor, (row, column) in shards:
        rows, columns = (torch.arange(float(size)) for size in tensor.shape)
        tensor.copy_(((rows + row).reshape(-1, 1) + 0.01 * (columns + column)) / 20)
lengths = torch.tensor([1, 2, 0, 3, 1, 1]) if RANK == 0 else torch.tensor([2, 0, 1, 1, 3, 2])
values = torch.randint(0, 20, (int(lengths.sum()),), generator=torch.Generator().manual_seed(RANK))
features = KeyedJaggedTensor.from_lengths_sync(keys=[f"of_{name}" for name in kinds], values=values, lengths=lengths)
pooled = model(features)
pooled.values().square().sum().backward()
show("pooled", pooled.to_dict())
dist.destroy_process_group()
