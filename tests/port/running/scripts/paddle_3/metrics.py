"""Metrics of an evaluation on several ranks: each counts on its own share, and the counts are put together at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod

import paddle
import paddle.distributed as dist
from paddle.distributed import ReduceOp

OPS = {"sum": ReduceOp.SUM, "max": ReduceOp.MAX, "min": ReduceOp.MIN}


class Metric(ABC):
    """Has a state of tensors, each with the op by which the ranks' are put together, or None to gather them."""

    def __init__(self, group=None):
        self.group = group
        self.state: dict[str, paddle.Tensor] = {}
        self.ops: dict[str, str | None] = {}

    def add(self, name: str, value: paddle.Tensor, op: str | None) -> None:
        self.state[name] = value
        self.ops[name] = op

    @abstractmethod
    def update(self, predicted: paddle.Tensor, expected: paddle.Tensor) -> None: ...

    @abstractmethod
    def compute(self) -> float: ...

    def synchronise(self) -> None:
        """Have the state of every rank be that of all of them."""
        tasks = []
        for name, tensor in self.state.items():
            op = self.ops[name]
            if op is None:
                self.state[name] = gathered(tensor, self.group)
            elif op == "max":
                tasks.append(dist.all_reduce(tensor, op=ReduceOp.MAX, group=self.group, sync_op=False))
            else:
                tasks.append(dist.all_reduce(tensor, ReduceOp.SUM, self.group, False))
        for task in tasks:
            task.wait()


def gathered(tensor: paddle.Tensor, group=None) -> paddle.Tensor:
    """Return the rows of all ranks, of which each may have another number."""
    size = dist.get_world_size(group)
    rows = paddle.to_tensor([tensor.shape[0]])
    all_rows = [paddle.empty_like(rows) for _ in range(size)]
    dist.all_gather(all_rows, rows, group=group)
    most = max(each.item() for each in all_rows)
    padded = paddle.zeros([most, *tensor.shape[1:]], dtype=tensor.dtype)
    padded[: tensor.shape[0]] = tensor
    parts: list[paddle.Tensor] = []
    dist.all_gather(parts, padded, group=group)
    return paddle.concat([part[: each.item()] for part, each in zip(parts, all_rows)])


class Accuracy(Metric):
    def __init__(self, group=None):
        super().__init__(group)
        self.add("right", paddle.zeros([1]), "sum")
        self.add("all", paddle.zeros([1]), "sum")

    def update(self, predicted, expected):
        self.state["right"] += (predicted.argmax(axis=-1) == expected).astype("float32").sum()
        self.state["all"] += float(expected.shape[0])

    def compute(self):
        return (self.state["right"] / self.state["all"]).item()


class Worst(Metric):
    def __init__(self, group=None):
        super().__init__(group)
        self.add("loss", paddle.zeros([1]), "max")

    def update(self, predicted, expected):
        losses = paddle.nn.functional.cross_entropy(predicted, expected, reduction="none")
        self.state["loss"] = paddle.maximum(self.state["loss"], losses.max())

    def compute(self):
        return self.state["loss"].item()


class Scores(Metric):
    """Keeps all predictions, as a curve of precision needs them."""

    def __init__(self, group=None):
        super().__init__(group)
        self.add("scores", paddle.zeros([0, 3]), None)

    def update(self, predicted, expected):
        self.state["scores"] = paddle.concat([self.state["scores"], predicted])

    def compute(self):
        return self.state["scores"].max(axis=-1).sum().item()


def confusion(predicted: paddle.Tensor, expected: paddle.Tensor, root: int = 0) -> list | None:
    """Return how often each class was taken for each other one, on the root."""
    table = paddle.zeros([3, 3], dtype="int64")
    for one, other in zip(predicted.argmax(axis=-1).tolist(), expected.tolist()):
        table[other, one] += 1
    dist.reduce(table, dst=root, op=ReduceOp.SUM)
    return table.tolist() if dist.get_rank() == root else None


def extremes(values: paddle.Tensor) -> dict[str, float]:
    found = {}
    for name, op in OPS.items():
        tensor = values.clone()
        dist.stream.all_reduce(tensor, op=op)
        found[name] = round(tensor.item(), 4)
    return found


def main() -> None:
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    paddle.seed(rank)
    group = dist.new_group(list(range(size)))
    metrics: list[Metric] = [Accuracy(group), Worst(), Scores(group=group)]
    for batch in range(2 + rank):
        expected = paddle.arange(4 + rank) % 3
        predicted = paddle.sin(paddle.arange(3.0 * (4 + rank)).reshape([4 + rank, 3]) + batch + rank)
        for metric in metrics:
            metric.update(predicted, expected)
    for metric in metrics:
        metric.synchronise()
    results = {type(metric).__name__: round(metric.compute(), 5) for metric in metrics}
    everywhere = []
    dist.all_gather_object(everywhere, results)
    print(rank, everywhere[0] == everywhere[-1], results)
    print(confusion(predicted, expected), extremes(predicted.sum().reshape([1])))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
