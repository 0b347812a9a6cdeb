"""A sharded checkpoint: each rank saves its share of the parameters, and a job with as many ranks loads it again."""

import os
import tempfile

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np
from mindspore import Tensor
from mindspore.ops import ReduceOp


class Shards:
    """The parameters as one flat tensor, of which each rank of *group* keeps a part."""

    def __init__(self, shapes, group):
        self.shapes = shapes
        self.group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        total = sum(int(np.prod(shape)) for shape in shapes.values())
        self.share = -(-total // self.size)
        self.mine = Tensor(np.zeros(self.share, dtype=np.float32))

    def shard(self, parameters):
        """Take this rank's part of the mean of all ranks' *parameters*."""
        flat = np.zeros(self.share * self.size, dtype=np.float32)
        flat[: sum(each.size for each in parameters.values())] = np.concatenate(
            [parameters[name].asnumpy().reshape(-1) for name in self.shapes]
        )
        handle = dist.reduce_scatter_tensor(self.mine, Tensor(flat), op=ReduceOp.SUM, group=self.group, async_op=True)
        if handle is not None:
            handle.wait()
        self.mine = self.mine / self.size

    def whole(self):
        """Return the parameters, gathered from all ranks."""
        flat = Tensor(np.zeros(self.share * self.size, dtype=np.float32))
        dist.all_gather_into_tensor(flat, self.mine, group=self.group)
        found, at, values = {}, 0, flat.asnumpy()
        for name, shape in self.shapes.items():
            count = int(np.prod(shape))
            found[name] = values[at : at + count].reshape(shape)
            at += count
        return found


class Checkpoint:
    """Files of shards in a folder that the first rank makes, and a copy of each shard with the next rank."""

    def __init__(self, shards, folder=None):
        self.shards = shards
        self.world = dist.get_world_size()
        where = [folder or tempfile.mkdtemp() if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(where, 0)
        self.folder = where[0]

    def path(self, rank):
        return os.path.join(self.folder, f"shard{rank}of{self.world}.npy")

    def save(self):
        np.save(self.path(self.shards.rank), self.shards.mine.asnumpy())
        dist.barrier()

    def load(self):
        self.shards.mine = Tensor(np.load(self.path(self.shards.rank)))
        dist.barrier()

    def spread(self, whole):
        """Load on the first rank alone, and send each rank its part."""
        parts = [Tensor(part) for part in np.split(whole, self.world)] if dist.get_rank() == 0 else []
        dist.scatter(self.shards.mine, parts, 0)

    def backup(self):
        """Return the shard of the rank before, which sends it."""
        rank = dist.get_rank()
        copy = Tensor(np.zeros(self.shards.share, dtype=np.float32))
        after, before = (rank + 1) % self.world, (rank - 1) % self.world
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, self.shards.mine, after),
                dist.P2POp(dist.irecv, copy, before),
            ]
        )
        for work in works if isinstance(works, list) else [works]:
            work.wait()
        return copy

    def remove(self):
        dist.barrier()
        if dist.get_rank() == 0:
            for rank in range(self.world):
                os.remove(self.path(rank))
            os.rmdir(self.folder)


def parameters_of(seed):
    rng = np.random.RandomState(seed)
    shapes = {"embedding": (5, 3), "weight": (3, 3), "bias": (3,)}
    return {name: Tensor(rng.randn(*shape).astype(np.float32)) for name, shape in shapes.items()}


def same(one, other):
    """Tell whether all ranks have equal parameters."""
    equal = all(np.array_equal(one[name], other[name]) for name in one)
    answer = Tensor(np.array([int(equal)]), ms.int32)
    dist.all_reduce(answer, op=ReduceOp.MIN)
    return bool(answer.asnumpy()[0])


def main():
    dist.init_process_group(backend="hccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.new_group(list(range(size)))
    parameters = parameters_of(seed=rank)
    shards = Shards({name: tuple(each.shape) for name, each in parameters.items()}, group)
    shards.shard(parameters)
    whole = shards.whole()
    checkpoint = Checkpoint(shards)
    checkpoint.save()
    shards.mine = shards.mine * 0
    checkpoint.load()
    print(rank, "loaded", same(whole, shards.whole()))
    copy = checkpoint.backup()
    flat = np.concatenate([np.load(checkpoint.path(each)) for each in range(size)])
    checkpoint.spread(flat + 1)
    total = Tensor(np.array([float(copy.asnumpy().sum())], dtype=np.float32))
    dist.reduce(total, dst=0, op="sum", group=group)
    if rank == 0:
        print(round(float(total.asnumpy()[0]), 4), dist.get_process_group_ranks(group))
    dist.all_reduce(total)
    print(rank, round(float(shards.mine.asnumpy().sum()), 4))
    checkpoint.remove()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
