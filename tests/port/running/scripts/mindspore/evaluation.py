"""Evaluate on several ranks: the samples are divided, and the first rank gathers scores, names and mistakes."""

from dataclasses import dataclass, field

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn
from mindspore.communication import get_group_size, get_rank
from mindspore.mint.distributed import (
    all_gather_object,
    all_reduce,
    broadcast,
    broadcast_object_list,
    destroy_process_group,
    gather,
    gather_object,
    init_process_group,
    scatter_object_list,
)

ROOT = 0


@dataclass
class Mistake:
    sample: int
    expected: int
    found: int


@dataclass
class Outcome:
    """What one rank has found out."""

    rank: int
    right: int = 0
    samples: int = 0
    mistakes: list = field(default_factory=list)


class Classifier(nn.Cell):
    def __init__(self, features, classes):
        super().__init__()
        weight = np.linspace(-1, 1, features * classes, dtype=np.float32).reshape(classes, features)
        self.weight = Tensor(weight)

    def construct(self, x):
        return mint.matmul(x, self.weight.t())


def samples_of(rank, size, count=11):
    """Return the numbers, features and classes of this rank's samples: every size-th."""
    numbers = list(range(rank, count, size))
    features = np.sin(np.arange(count * 4, dtype=np.float32)).reshape(count, 4)
    classes = np.arange(count) % 3
    return numbers, Tensor(features[numbers]), classes[numbers].tolist()


def evaluate(model, rank, size):
    numbers, features, expected = samples_of(rank, size)
    scores = model(features)
    outcome = Outcome(rank, samples=len(numbers))
    for number, wanted, found in zip(numbers, expected, scores.asnumpy().argmax(axis=-1).tolist()):
        if wanted == found:
            outcome.right += 1
        else:
            outcome.mistakes.append(Mistake(number, wanted, found))
    return scores, outcome


def gather_scores(scores, most, root=ROOT):
    """Return the scores of all ranks on the root. All have to be of one shape: they are padded."""
    rank, size = get_rank(), get_group_size()
    padded = np.zeros((most, scores.shape[1]), dtype=np.float32)
    padded[: scores.shape[0]] = scores.asnumpy()
    parts = [Tensor(np.zeros_like(padded)) for _ in range(size)] if rank == root else []
    gather(Tensor(padded), parts, root)
    return [part.asnumpy() for part in parts]


def gather_outcomes(outcome, root=ROOT):
    places = [None] * get_group_size() if get_rank() == root else None
    gather_object(outcome, places, dst=root)
    return places


def report(outcomes):
    for outcome in outcomes:
        wrong = [(mistake.sample, mistake.expected, mistake.found) for mistake in outcome.mistakes]
        print(f"rank {outcome.rank}: {outcome.right} of {outcome.samples}, mistakes {wrong}")
    right = sum(outcome.right for outcome in outcomes)
    print(f"{right} of {sum(outcome.samples for outcome in outcomes)}")


def main():
    init_process_group()
    rank, size = get_rank(), get_group_size()
    options = [{"classes": 3, "features": 4} if rank == ROOT else None]
    broadcast_object_list(options, src=ROOT)
    model = Classifier(**options[0])
    broadcast(model.weight, src=ROOT)
    scores, outcome = evaluate(model, rank, size)
    most = Tensor(np.array([scores.shape[0]], dtype=np.int32))
    all_reduce(most, op="max")
    parts = gather_scores(scores, int(most.asnumpy()[0]))
    outcomes = gather_outcomes(outcome)
    if rank == ROOT:
        report(outcomes)
        print([round(float(part.sum()), 4) for part in parts])
    wishes = [f"look at {mistake.sample}" for outcome in outcomes for mistake in outcome.mistakes] if outcomes else []
    mine = [None]
    scatter_object_list(mine, (wishes + ["nothing"] * size)[:size] if rank == ROOT else [None] * size, src=ROOT)
    everybody = [None] * size
    all_gather_object(everybody, (rank, mine[0], ms.get_context("mode") is not None))
    print(everybody)
    destroy_process_group()


if __name__ == "__main__":
    main()
