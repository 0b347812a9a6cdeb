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

    def send_recv(self, to_send, recv_tensor=None):
        res = torch.empty_like(to_send) if recv_tensor is None else recv_tensor
        send_op = P2POp(dist.isend, to_send, self.send_rank, group=self._process_group)
        recv_op = P2POp(dist.irecv, res, self.recv_rank, group=self._process_group)
        self._ops.append(send_op)
        self._ops.append(recv_op)
        return res

    def commit(self):
        self._reqs = batch_isend_irecv(self._ops)

    def wait(self):
        for req in self._reqs:
            req.wait()
        self._reqs = None
        self._ops = []


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
    comm = RingComm(group)
    x = torch.arange(4.0) + 10 * dist.get_rank()
    total = x.clone()
    for _ in range(comm.world_size - 1):
        y = comm.send_recv(x)
        comm.commit()
        comm.wait()
        total += y
        x = y
    w = torch.ones(4, requires_grad=True)
    AllReduce.apply(group, w * total).sum().backward()
    out = [torch.empty(4) for _ in range(group.size())] if group.rank() == 0 else None
    dist.gather(w.grad, out, dst=0, group=group)
    if dist.get_rank() == 0:
        print(total.tolist(), [o.tolist() for o in out], dist.get_process_group_ranks(group))
    dist.barrier(group=group, device_ids=None)
    dist.destroy_process_group()


main()
