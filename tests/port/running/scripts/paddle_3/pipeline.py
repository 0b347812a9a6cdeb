"""A pipeline: each rank has a stage of the model. Micro-batches go through all of them, and their gradients come back."""

from typing import List, Optional

import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.distributed import irecv, isend
from paddle.distributed.collective import Group

WIDTH = 4


class Link:
    """Messages to the stages before and after this one."""

    def __init__(self, group: Group):
        self.group = group
        self.stage = group.rank
        self.stages = group.nranks
        self.sent = []

    @property
    def is_first(self) -> bool:
        return self.stage == 0

    @property
    def is_last(self) -> bool:
        return self.stage == self.stages - 1

    def rank_of(self, stage: int) -> int:
        return self.group.ranks[stage]

    def receive(self, stage: int, shape: List[int]) -> paddle.Tensor:
        tensor = paddle.empty(shape, dtype="float32")
        dist.recv(tensor, src=self.rank_of(stage), group=self.group)
        return tensor

    def send(self, tensor: paddle.Tensor, stage: int) -> None:
        self.sent.append((dist.send(tensor, self.rank_of(stage), self.group, False), tensor))

    def finish(self) -> None:
        for task, _ in self.sent:
            task.wait()
        self.sent = []


class Stage(nn.Layer):
    def __init__(self, number: int):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        weight = paddle.arange(WIDTH * WIDTH, dtype="float32").reshape([WIDTH, WIDTH])
        self.linear.weight.set_value(weight / 20.0 + 0.1 * number)

    def forward(self, x):
        return paddle.tanh(self.linear(x))


def forward(link: Link, stage: Stage, x: Optional[paddle.Tensor], rows: int):
    """Return the stage's input and output of one micro-batch."""
    if not link.is_first:
        x = link.receive(link.stage - 1, [rows, WIDTH])
        x.stop_gradient = False
    y = stage(x)
    if not link.is_last:
        link.send(y.detach(), link.stage + 1)
    return x, y


def backward(link: Link, x: paddle.Tensor, y: paddle.Tensor) -> Optional[float]:
    """Send the gradient of one micro-batch to the stage before, and return its loss where that is known."""
    loss = None
    if link.is_last:
        mean = y.square().mean()
        mean.backward()
        loss = mean.item()
    else:
        y.backward(link.receive(link.stage + 1, y.shape))
    if not link.is_first:
        link.send(x.grad, link.stage - 1)
    return loss


def step(link: Link, stage: Stage, batch: paddle.Tensor, pieces: int) -> Optional[float]:
    parts = paddle.split(batch, pieces)
    rows = parts[0].shape[0]
    passed = [forward(link, stage, part if link.is_first else None, rows) for part in parts]
    losses = [backward(link, x, y) for x, y in passed]
    link.finish()
    for parameter in stage.parameters():
        parameter.set_value(parameter - 0.1 * parameter.grad / pieces)
        parameter.clear_gradient()
    return sum(losses) / pieces if link.is_last else None


def shifted(value: float, group: Optional[Group] = None) -> float:
    """Return the value of the rank before, in a ring."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    mine, other = paddle.to_tensor([value]), paddle.zeros([1])
    tasks = [isend(mine, dst=(rank + 1) % size, group=group)]
    tasks.append(irecv(other, src=(rank - 1) % size, group=group))
    for task in tasks:
        task.wait()
    return other.item()


def main():
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.new_group(list(range(size)))
    link = Link(group)
    stage = Stage(link.stage)
    batch = paddle.arange(8 * WIDTH, dtype="float32").reshape([8, WIDTH]) / 32.0
    for number in range(2):
        loss = step(link, stage, batch, pieces=4)
        tensor = paddle.to_tensor([0.0 if loss is None else loss])
        dist.broadcast(tensor, src=link.rank_of(link.stages - 1), group=group)
        print(f"step {number}, stage {rank}: {tensor.item():.6f}")
    norm = stage.linear.weight.norm().reshape([1])
    norms = []
    dist.all_gather(norms, norm)
    print(rank, [round(norm.item(), 5) for norm in norms], shifted(float(rank)))
    dist.barrier(group)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
