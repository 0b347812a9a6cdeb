"""Ring attention: keys and values go round the ranks, while each computes the attention of its own queries."""

import math
from typing import Optional

import torch
import torch.distributed as dist
from torch.distributed import P2POp, batch_isend_irecv


class RingComm:
    def __init__(self, process_group: dist.ProcessGroup):
        self._process_group = process_group
        self._ops = []
        self.rank = dist.get_rank(self._process_group)
        self.world_size = dist.get_world_size(self._process_group)
        self._reqs = None
        self.send_rank = (self.rank + 1) % self.world_size
        self.recv_rank = (self.rank - 1) % self.world_size
        if process_group is not None:
            self.send_rank = dist.get_global_rank(self._process_group, self.send_rank)
            self.recv_rank = dist.get_global_rank(self._process_group, self.recv_rank)

    def send_recv(self, to_send, recv_tensor: Optional[torch.Tensor] = None) -> torch.Tensor:
        res = torch.empty_like(to_send) if recv_tensor is None else recv_tensor
        send_op = P2POp(dist.isend, to_send, self.send_rank, group=self._process_group)
        recv_op = P2POp(dist.irecv, res, self.recv_rank, group=self._process_group)
        self._ops.append(send_op)
        self._ops.append(recv_op)
        return res

    def commit(self):
        if self._reqs is not None:
            raise RuntimeError("commit called twice")
        self._reqs = batch_isend_irecv(self._ops)

    def wait(self):
        for req in self._reqs:
            req.wait()
        self._reqs = None
        self._ops = []


def attend(q, k, v, is_causal):
    """Return the attention of one block, and the logarithm of the sum by which it is divided."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        scores = scores + torch.full_like(scores, float("-inf")).triu(1)
    sums = scores.logsumexp(dim=-1, keepdim=True)
    return (scores - sums).exp() @ v, sums


def merged(out, sums, block, block_sums):
    if out is None:
        return block, block_sums
    both = torch.logaddexp(sums, block_sums)
    return out * (sums - both).exp() + block * (block_sums - both).exp(), both


def ring_attention(group, q, k, v, causal=True):
    comm = RingComm(group)
    out = sums = None
    for step in range(comm.world_size):
        last = step + 1 == comm.world_size
        if not last:
            next_k, next_v = comm.send_recv(k), comm.send_recv(v)
            comm.commit()
        if not causal or step <= comm.rank:
            out, sums = merged(out, sums, *attend(q, k, v, causal and step == 0))
        if not last:
            comm.wait()
            k, v = next_k, next_v
    return out


class AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, group, x):
        ctx.group = group
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad, op=dist.ReduceOp.SUM, group=ctx.group)
        return None, grad


def main():
    dist.init_process_group(backend="gloo")
    group = dist.new_group(list(range(dist.get_world_size())))
    rank, size = group.rank(), group.size()
    generator = torch.Generator().manual_seed(9)
    q, k, v = (torch.randn(3 * size, 4, generator=generator) for _ in range(3))
    mine = slice(3 * rank, 3 * rank + 3)
    for causal in (False, True):
        out = ring_attention(group, q[mine], k[mine].contiguous(), v[mine].contiguous(), causal)
        expected, _ = attend(q, k, v, causal)
        torch.testing.assert_close(out, expected[mine])
    w = torch.ones(4, requires_grad=True)
    AllReduce.apply(group, w * out.sum(dim=0)).sum().backward()
    out = [torch.empty(4) for _ in range(group.size())] if group.rank() == 0 else None
    dist.gather(w.grad, out, dst=0, group=group)
    print(rank, [round(value, 4) for value in w.grad.tolist()])
    if dist.get_rank() == 0:
        print([[round(x, 4) for x in o.tolist()] for o in out], dist.get_process_group_ranks(group))
    dist.barrier(group=group, device_ids=None)
    dist.destroy_process_group()


main()
