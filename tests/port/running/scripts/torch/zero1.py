"""ZeRO-1: each rank keeps the optimizer state of its share."""

import contextlib
from typing import Any, List, Optional, Sequence

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp


class ShardedSGD:
    """Reduces each rank's share of the gradients to it, and gathers the updates that the ranks compute."""

    def __init__(self, parameters: Sequence[torch.Tensor], lr: float, group: Optional[dist.ProcessGroup] = None):
        self.parameters, self.lr, self.group = parameters, lr, group
        self.rank = dist.get_rank(group)
        self.world = dist.get_world_size(group)
        total = sum(p.numel() for p in parameters)
        self.share = (total + self.world - 1) // self.world
        self.momentum = torch.zeros(self.share)
        self.pending: List[Any] = []

    def reduce(self, gradients):
        flat = torch.cat([g.reshape(-1) for g in gradients])
        flat = torch.nn.functional.pad(flat, (0, self.share * self.world - flat.numel()))
        mine = torch.empty(self.share)
        handle = dist.reduce_scatter_tensor(mine, flat, op=ReduceOp.SUM, group=self.group, async_op=True)
        self.pending.append((handle, mine))
        return mine

    def step(self, gradients):
        mine = self.reduce(gradients)
        while self.pending:
            self.pending.pop()[0].wait()
        self.momentum.mul_(0.9).add_(mine / self.world)
        update = torch.empty(self.share * self.world)
        dist.all_gather_into_tensor(update, self.momentum, group=self.group)
        at = 0
        for p in self.parameters:
            p.sub_(self.lr * update[at : at + p.numel()].view_as(p))
            at += p.numel()

    def clip(self, most: float) -> float:
        """Scale the momentum so that its norm over all ranks is *most* at the most."""
        square = self.momentum.square().sum()
        dist.all_reduce(square, ReduceOp.SUM, self.group)
        norm = float(square) ** 0.5
        if norm > most:
            self.momentum.mul_(most / norm)
        return norm

    def state_dict(self, root: int = 0) -> Optional[torch.Tensor]:
        """Return the whole momentum on the root, None on other ranks."""
        parts = [torch.empty(self.share) for _ in range(self.world)] if self.rank == root else None
        dist.gather(self.momentum, parts, dst=root, group=self.group)
        return torch.cat(parts) if parts is not None else None

    def load_state_dict(self, whole: Optional[torch.Tensor], root: int = 0) -> None:
        parts = list(whole.chunk(self.world)) if self.rank == root else None
        dist.scatter(self.momentum, parts, src=root, group=self.group)


@contextlib.contextmanager
def process_group(backend: str):
    dist.init_process_group(backend)
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def main():
    with process_group("gloo") as (rank, size):
        torch.manual_seed(0)
        weights = [torch.randn(4, 3), torch.randn(3)]
        for w in weights:
            dist.broadcast(w, src=0)
        optimizer = ShardedSGD(weights, 0.1, dist.new_group(list(range(size))))
        generator = torch.Generator().manual_seed(rank)
        for _ in range(3):
            optimizer.step([torch.randn(w.shape, generator=generator) for w in weights])
            norm = optimizer.clip(1.5)
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        norms = [None] * size
        dist.all_gather_object(norms, round(float(sum(w.norm() for w in weights)), 5))
        print(rank, norms, round(norm, 5), None if state is None else round(float(state.sum()), 5))


if __name__ == "__main__":
    main()
