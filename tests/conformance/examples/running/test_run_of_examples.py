"""Examples run on ranks: what is corrupted in one is noticed, and what it leaves behind does not reach the next.

The examples are ours; all run in one call, in this order, each on new copies of the same process.
"""

from __future__ import annotations

from typing import Any

import pytest

from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running.runner import Outcome, run_examples
from shim.launch import pool

pytestmark = pytest.mark.frameworks

GOOD = """
>>> tensor = torch.arange(2) + 1 + 2 * rank
>>> tensor
tensor([1, 2]) # Rank 0
tensor([3, 4]) # Rank 1
>>> dist.all_reduce(tensor)
>>> tensor
tensor([4, 6]) # Rank 0
tensor([4, 6]) # Rank 1
"""
GIVEN = """
>>> x = torch.zeros(1)
>>> dist.barrier()

>>> x
tensor([5]) # Rank 0
tensor([6]) # Rank 1
>>> splits
[1, 2] # Rank 0
[3, 4] # Rank 1
>>> out = ...
>>> dist.all_reduce(x)
>>> out
tensor([1, 2, 3]) # Rank 0
tensor([1, 2, 3]) # Rank 1
"""
TEXTS = {
    "good": GOOD,
    "a value, on one rank": GOOD.replace("tensor([4, 6]) # Rank 1", "tensor([4, 7]) # Rank 1"),
    "a value, before the call": GOOD.replace("tensor([3, 4])", "tensor([3, 5])"),
    "a signature": GOOD.replace("all_reduce(tensor)", "all_reduce(output=tensor)"),
    "a function": GOOD.replace("all_reduce", "all_reduced"),
    "what is given": GIVEN.replace("tensor([1, 2, 3])", "tensor([0])").replace("out\n", "x - 11\n"),
    "what was made, beside what is given": ">>> x = torch.ones(1)\n>>> x\ntensor([2.])\n>>> splits\n[1, 2]\n",
    "an assignment": ">>> x = torch.ones(1) * rank\n>>> # x for rank 0: [0]\n>>> # x for rank 1: [1]\n",
    "an assignment, wrongly": ">>> x = torch.ones(1) * rank\n>>> # x for rank 0: [0]\n>>> # x for rank 1: [2]\n",
    "no value": ">>> x = None\n>>> x\nNone\n",
    "a value left out": ">>> dist.get_rank()\n>>> print(dist.get_world_size())\n2\n",
    "raises": ">>> if rank == 0:\n>>>     raise ValueError # Raises exception\n",
    "does not raise": ">>> rank # Raises exception\n",
    "the state of the framework": ">>> torch.set_default_dtype(torch.float64)\n>>> torch.ones(1).dtype\ntorch.float64\n",
    "after it": ">>> torch.ones(1).dtype\ntorch.float32\n",
    "the environment": '>>> import os\n>>> os.environ["SHIM_RANK"] = "7"\n>>> os.environ["LEFT"] = "1"\n',
    "after that": '>>> import os\n>>> dist.get_rank(), "LEFT" in os.environ\n(0, False) # Rank 0\n(1, False) # Rank 1\n',
    "one rank ends early": ">>> if rank == 1:\n>>>     raise RuntimeError\n>>> dist.barrier()\n",
    "after an early end": GOOD,
    "one rank dies": ">>> import os\n>>> if rank == 1:\n>>>     os._exit(3)\n>>> dist.barrier()\n",
    "after a death": GOOD,
    "a group that is left": ">>> dist.new_group([0])\n>>> dist.new_group([1])\n",
    "after a group": GOOD,
}
FAILS = {
    "what was made, beside what is given": (1, "shown 2., seen 1."),
    "a value, on one rank": (1, "shown 7, seen 6"),
    "a value, before the call": (1, "shown 5, seen 4"),
    "a signature": (0, "unexpected keyword argument 'output'"),
    "a function": (0, "has no attribute 'all_reduced'"),
    "an assignment, wrongly": (1, "2 for 1."),
    "does not raise": (0, "documented to raise, and raised on no rank"),
    "one rank ends early": (1, "RuntimeError"),
    "one rank dies": (1, "rank 1 died: its process exited with status 3"),
}


def example_of(what: str) -> Example:
    (example,) = examples_in(TEXTS[what], "torch", f"torch.distributed.{what}", "a test")
    assert example.ranks == 2
    return example


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    seen = run_examples([example_of(what) for what in TEXTS])
    return dict(zip(TEXTS, seen, strict=True))


@pytest.mark.parametrize("what", [what for what in TEXTS if what not in FAILS])
def test_what_is_as_shown_passes(outcomes: dict[str, Outcome], what: str) -> None:
    assert outcomes[what].failures == ()


@pytest.mark.parametrize("what", FAILS)
def test_what_is_corrupted_fails(outcomes: dict[str, Outcome], what: str) -> None:
    rank, told = FAILS[what]
    assert any(told in text for failed, _, text in outcomes[what].failures if failed == rank), outcomes[what].failures


def test_an_example_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    # The one that hangs comes first; the other may take its time on a busy machine.
    run, deadlines = pool.RankPool.run, iter([2.0])

    def run_first_briefly(*arguments: Any, deadline: float) -> list[pool.Outcome]:
        return run(*arguments, deadline=next(deadlines, deadline))

    monkeypatch.setattr(pool.RankPool, "run", run_first_briefly)
    text = ">>> import time\n>>> if rank == 1:\n>>>     time.sleep(1000)\n>>> dist.barrier()\n"
    (hangs,) = examples_in(text, "torch", "torch.distributed.barrier", "a test")
    late, good = run_examples([hangs, example_of("good")])
    assert all("had not answered after 2 s" in told for _, _, told in late.failures)
    assert {rank for rank, _, _ in late.failures} == {0, 1}
    assert good.failures == ()


def test_only_the_rank_that_sees_something_else_fails(outcomes: dict[str, Outcome]) -> None:
    assert {rank for rank, _, _ in outcomes["a value, on one rank"].failures} == {1}
