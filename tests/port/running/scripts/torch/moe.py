"""Mixture of experts: each rank has an expert, and tokens go to the rank of theirs and back, as many as there are."""

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp as Op
from torch.distributed import all_to_all_single as a2a
from torch.distributed import get_rank, get_world_size


class Exchange(torch.autograd.Function):
    """Rows to other ranks. The gradient takes the way back."""

    @staticmethod
    def forward(ctx, rows, sent, received, group):
        ctx.splits, ctx.group = (sent, received), group
        out = rows.new_empty(sum(received), *rows.shape[1:])
        a2a(out, rows.contiguous(), received, sent, group=ctx.group)
        return out

    @staticmethod
    def backward(ctx, gradient):
        sent, received = ctx.splits
        out = gradient.new_empty(sum(sent), *gradient.shape[1:])
        a2a(out, gradient.contiguous(), output_split_sizes=sent, input_split_sizes=received, group=ctx.group)
        return out, None, None, None


def counts_of(experts, size, group=None):
    """Return how many tokens this rank sends to each other one, and gets from it."""
    sent = torch.bincount(experts, minlength=size)
    received = torch.empty_like(sent)
    a2a(received, sent, group=group)
    return sent.tolist(), received.tolist()


def dispatch(tokens, counts, group=None, overlap=False):
    received = torch.empty(get_world_size(group), dtype=torch.long)
    a2a(received, counts, group=group)
    out = tokens.new_empty(int(received.sum()), tokens.shape[1])
    work = a2a(out, tokens, received.tolist(), counts.tolist(), group, overlap)
    if overlap:
        work.wait()
    return out, received


class Experts(torch.nn.Module):
    def __init__(self, width, group=None):
        super().__init__()
        self.group = group
        self.size = get_world_size(group)
        torch.manual_seed(5)
        self.gate = torch.nn.Linear(width, self.size, bias=False)
        self.expert = torch.nn.Linear(width, width)
        with torch.no_grad():
            self.expert.weight += get_rank(group)

    def forward(self, x):
        weights = self.gate(x).softmax(dim=-1)
        best, experts = weights.max(dim=-1)
        order = experts.argsort(stable=True)
        sent, received = counts_of(experts, self.size, self.group)
        arrived = Exchange.apply(x[order], sent, received, self.group)
        back = Exchange.apply(self.expert(arrived), received, sent, self.group)
        out = torch.empty_like(back)
        out[order] = back
        return best.unsqueeze(-1) * out, sent


def balance(sent, group=None):
    """Return the most and the mean number of tokens that a rank gets, over all ranks."""
    load = torch.tensor(sent, dtype=torch.float32)
    dist.all_reduce(load, op=Op.SUM, group=group)
    most = load.max()
    dist.all_reduce(most, Op.MAX, group)
    return most.item(), load.mean().item()


def main():
    dist.init_process_group()
    rank, size = get_rank(), get_world_size()
    layer = Experts(4)
    x = torch.randn(6 + rank, 4, generator=torch.Generator().manual_seed(rank), requires_grad=True)
    out, sent = layer(x)
    out.square().sum().backward()
    dist.all_reduce(layer.gate.weight.grad)
    print(rank, sent, balance(sent), round(out.sum().item(), 3), round(x.grad.sum().item(), 3))
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
