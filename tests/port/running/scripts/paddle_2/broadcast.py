"""Start from the same parameters: they are broadcast in groups of one type, coalesced, and compared on all ranks (Paddle 2)."""

import argparse
from collections import defaultdict

import numpy as np
import paddle
import paddle.distributed as dist


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=16, help="elements of a message")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def build(seed):
    paddle.seed(seed)
    rng = np.random.RandomState(seed)
    model = paddle.nn.Sequential(paddle.nn.Linear(4, 5), paddle.nn.ReLU(), paddle.nn.Linear(5, 2))
    for parameter in model.parameters():
        parameter.set_value(paddle.to_tensor(rng.randn(*parameter.shape).astype("float32")))
    return model


def coalesced(tensors, most):
    """Yield lists of tensors of the same dtype that have *most* elements together, or are alone."""
    by_dtype = defaultdict(list)
    for tensor in tensors:
        by_dtype[tensor.dtype].append(tensor)
    for same in by_dtype.values():
        bucket, elements = [], 0
        for tensor in same:
            count = int(np.prod(tensor.shape))
            if bucket and elements + count > most:
                yield bucket
                bucket, elements = [], 0
            bucket.append(tensor)
            elements += count
        yield bucket


def broadcast_parameters(model, src, group=None, most=16):
    """Broadcast in the background, a message for each bucket."""
    started = []
    for bucket in coalesced(model.parameters(), most):
        flat = paddle.concat([tensor.detach().reshape([-1]) for tensor in bucket])
        started.append((dist.broadcast(flat, src, group, sync_op=False), flat, bucket))
    for task, flat, bucket in started:
        task.wait()
        at = 0
        for tensor in bucket:
            count = int(np.prod(tensor.shape))
            tensor.set_value(flat[at : at + count].reshape(tensor.shape))
            at += count
    return len(started)


class Checker:
    """Compares a checksum of the parameters with those of the other ranks."""

    def __init__(self, model, group):
        self.model = model
        self.group = group

    def checksum(self):
        sums = [parameter.detach().sum().reshape([1]) for parameter in self.model.parameters()]
        return paddle.concat(sums)

    def table(self):
        """Each rank's checksums, by alltoall, as every rank sends its own to all."""
        mine = self.checksum()
        outputs = [paddle.zeros_like(mine) for _ in range(self.group.nranks)]
        dist.alltoall([mine] * self.group.nranks, outputs, self.group)
        return paddle.stack(outputs)

    def agree(self):
        table = self.table().numpy()
        return bool((table == table[0]).all())

    def shares(self):
        """Send each rank the part of the checksums that it is to keep: the first gets one more."""
        size, rank = self.group.nranks, self.group.get_group_rank(dist.get_rank())
        mine = self.checksum()
        sent = [len(part) for part in np.array_split(np.arange(mine.shape[0]), size)]
        received = [sent[rank]] * size
        out = paddle.zeros([sum(received)], dtype=mine.dtype)
        dist.alltoall_single(mine, out, sent, received, group=self.group)
        return out


def groups_of(rank, size):
    """Return a group for the world and one for this rank's half."""
    groups = {"world": dist.new_group(list(range(size)))}
    for name, ranks in (("low", range(size // 2)), ("high", range(size // 2, size))):
        group = dist.new_group(list(ranks))
        if rank in ranks:
            groups[name] = group
    return groups


def main():
    arguments = parse()
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = groups_of(rank, size)
    model = build(arguments.seed + rank)
    checker = Checker(model, groups["world"])
    before = checker.agree()
    messages = broadcast_parameters(model, src=size - 1, group=groups["world"], most=arguments.most)
    print(f"rank {rank}: {messages} messages, agree {before} before, {checker.agree()} after")
    for name, group in sorted(groups.items()):
        total = paddle.to_tensor([float(rank + 1)])
        dist.all_reduce(total, op=dist.ReduceOp.PROD, group=group)
        print(name, group.nranks, group.rank, group.ranks, total.item())
    names = [model.__class__.__name__ if rank == 0 else None]
    dist.broadcast_object_list(names, src=0)
    counts = []
    dist.all_gather_object(counts, (rank, len(model.parameters())))
    print(names, counts, [round(value, 4) for value in checker.shares().tolist()])
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
