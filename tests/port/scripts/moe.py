import torch
import torch.distributed as dist
from torch.distributed import ReduceOp as Op
from torch.distributed import all_to_all_single as a2a
from torch.distributed import get_rank, get_world_size


def dispatch(tokens, counts, group=None, overlap=False):
    received = torch.empty(get_world_size(group), dtype=torch.long)
    a2a(received, counts, group=group)
    out = tokens.new_empty(int(received.sum()), tokens.shape[1])
    work = a2a(out, tokens, received.tolist(), counts.tolist(), group, overlap)
    if overlap:
        work.wait()
    return out, received


def main():
    dist.init_process_group()
    rank, size = get_rank(), get_world_size()
    counts = torch.tensor([1 + (rank + i) % 3 for i in range(size)])
    tokens = torch.arange(float(counts.sum() * 2)).view(-1, 2) + 100 * rank
    for overlap in (False, True):
        out, received = dispatch(tokens, counts, overlap=overlap)
    stats = torch.tensor([float(out.sum()), float(out.max())])
    dist.all_reduce(stats[:1], op=Op.SUM)
    dist.all_reduce(stats[1:], Op.MAX)
    objects = [stats.tolist() if rank == 0 else None]
    dist.broadcast_object_list(objects, src=0)
    dist.scatter_object_list(mine := [None], [f"for {i}" for i in range(size)] if rank == 0 else [None] * size, src=0)
    print(rank, objects, mine, received.tolist())
    dist.destroy_process_group()


main()
