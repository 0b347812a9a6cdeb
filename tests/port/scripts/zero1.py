"""ZeRO-1: each rank keeps the optimizer state of its share."""

import torch
import torch.distributed as dist


class ShardedSGD:
    def __init__(self, parameters, lr, group=None):
        self.parameters, self.lr, self.group = parameters, lr, group
        self.rank = dist.get_rank(group)
        self.world = dist.get_world_size(group)
        total = sum(p.numel() for p in parameters)
        self.share = (total + self.world - 1) // self.world
        self.momentum = torch.zeros(self.share)

    def step(self, gradients):
        flat = torch.cat([g.reshape(-1) for g in gradients])
        flat = torch.nn.functional.pad(flat, (0, self.share * self.world - flat.numel()))
        mine = torch.empty(self.share)
        handle = dist.reduce_scatter_tensor(mine, flat, op=dist.ReduceOp.SUM, group=self.group, async_op=True)
        handle.wait()
        self.momentum.mul_(0.9).add_(mine / self.world)
        update = torch.empty(self.share * self.world)
        dist.all_gather_into_tensor(update, self.momentum, group=self.group)
        at = 0
        for p in self.parameters:
            p.sub_(self.lr * update[at : at + p.numel()].view_as(p))
            at += p.numel()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    weights = [torch.randn(4, 3), torch.randn(3)]
    for w in weights:
        dist.broadcast(w, src=0)
    optimizer = ShardedSGD(weights, 0.1)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(3):
        optimizer.step([torch.randn(w.shape, generator=generator) for w in weights])
    norms = [None] * dist.get_world_size()
    dist.all_gather_object(norms, round(float(sum(w.norm() for w in weights)), 5))
    if dist.get_rank() == 0:
        print(norms)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
