"""Examples run on ranks with tensors of another kind than they make; those that are ours break what they are to notice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shim.conformance.examples.conversion import GRADIENT
from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import NO_TENSOR, judge, judge_kind, read_records, verdict_of_end
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running.runner import PRELOADED, Outcome, run_in_pool
from shim.conformance.kinds import QUIET
from shim.launch.original import Original
from shim.launch.pool import RankPool
from shim.record.releases import version_of

GIVEN = ">>> x = torch.tensor([1., 2.]) * (rank + 1)\n"
COPIES = """
>>> from shim.conformance.examples import border, conversion
>>> conversion._MAKERS["numpy"] = lambda array, dtype: array.copy()
"""
IN_PLACE = GIVEN + ">>> dist.all_reduce(x)\n>>> x\ntensor([3., 6.])\n"
LATER = GIVEN + ">>> work = dist.all_reduce(x, async_op=True)\n>>> work.wait()\nTrue\n>>> x\ntensor([3., 6.])\n"
RETURNED = """
>>> from torch.distributed._functional_collectives import all_reduce
>>> y = all_reduce(x, "sum", dist.group.WORLD)
>>> y.add(1), x
(tensor([4., 7.]), tensor([1., 2.])) # Rank 0
(tensor([4., 7.]), tensor([2., 4.])) # Rank 1
"""
LISTS = """
>>> out = [torch.zeros(2) for _ in range(2)]
>>> dist.all_gather(out, x)
>>> out
[tensor([1., 2.]), tensor([2., 4.])]
"""
BATCH = """
>>> y = torch.zeros(2, 2)
>>> operations = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y[:, 1], 1 - rank)]
>>> for work in dist.batch_isend_irecv(operations):
...     work.wait()
>>> y
tensor([[0., 2.], [0., 4.]]) # Rank 0
tensor([[0., 1.], [0., 2.]]) # Rank 1
"""
OBJECTS = ">>> out = [None] * 2\n>>> dist.all_gather_object(out, {'x': x})\n>>> out\n[{'x': tensor([1., 2.])}, {'x': tensor([2., 4.])}]\n"
FUTURE = ">>> work = dist.all_reduce(x, async_op=True)\n>>> work.get_future().wait()\n[tensor([3., 6.])]\n"
TEXTS = {
    "in place": IN_PLACE,
    "later": LATER,
    "what is returned": GIVEN + RETURNED,
    "lists": GIVEN + LISTS,
    "a batch": GIVEN + BATCH,
    "a future": GIVEN + FUTURE,
    "in place, copied": COPIES + IN_PLACE,
    "later, copied": COPIES + LATER,
    "a batch, copied": COPIES + GIVEN + BATCH,
    "nothing brought back": COPIES + ">>> border._Copy.bring_back = lambda self: None\n" + IN_PLACE,
    "nothing brought back later": COPIES + ">>> border._Copy.bring_back = lambda self: None\n" + LATER,
    "what is returned, as it is": ">>> from shim.conformance.examples import border\n"
    ">>> border._Crossing._own_of = lambda self, tensor: tensor\n" + GIVEN + RETURNED,
    "a value": IN_PLACE.replace("3., 6.", "3., 7."),
    "objects": GIVEN + OBJECTS,
    "no tensor": ">>> dist.get_world_size()\n2\n",
    "a dtype": ">>> dist.all_reduce(torch.ones(1, dtype=torch.bfloat16))\n",
    "a gradient": GIVEN + ">>> dist.all_reduce(x.requires_grad_())\n",
}  # fmt: skip
FAILS = {
    "nothing brought back": "shown 3., seen 1.",
    "nothing brought back later": "shown 3., seen 1.",
    "what is returned, as it is": "has no attribute 'add'",
    "a value": "shown 7., seen 6.",
}
REFUSED = {"a dtype": "numpy has no bfloat16", "a gradient": GRADIENT}
WITHOUT = ("objects", "no tensor")


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    """What has all frameworks, and each example runs in copies of: MindSpore before Paddle, which it cannot follow."""
    with Original([*PRELOADED["mindspore"], *PRELOADED["torch"], *PRELOADED["paddle"]], QUIET) as original:
        yield original


def run_in_copies(original: Original, example: Example, kind: str) -> Outcome:
    with RankPool(2, original=original) as pool:
        return run_in_pool(pool, example, kind)


@pytest.fixture(scope="module")
def outcomes(original: Original) -> dict[str, Outcome]:
    return {
        what: run_in_copies(original, examples_in(text, "torch", f"torch.distributed.{what}", "a test")[0], "numpy")
        for what, text in TEXTS.items()
    }


@pytest.mark.parametrize("what", [what for what in TEXTS if what not in (*FAILS, *REFUSED)])
def test_what_goes_well_with_its_own_goes_well_on_this_machine(outcomes: dict[str, Outcome], what: str) -> None:
    assert outcomes[what].failures == ()
    assert (outcomes[what].crossed > 0) == (what not in WITHOUT)
    assert outcomes[what].refusal == ""


@pytest.mark.parametrize("what", FAILS)
def test_what_is_broken_fails_on_this_machine(outcomes: dict[str, Outcome], what: str) -> None:
    assert any(FAILS[what] in text for _, _, text in outcomes[what].failures), outcomes[what].failures


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_kind_has_not_is_refused_on_this_machine(outcomes: dict[str, Outcome], what: str) -> None:
    assert outcomes[what].refusal == REFUSED[what]


@pytest.mark.parametrize(
    ("framework", "kind", "names"),
    [
        ("torch", "paddle", ("all_gather", "batch_isend_irecv", "record_comm")),
        ("paddle", "torch", ("alltoall", "irecv", "P2POp")),
        ("mindspore", "paddle", ("mint.distributed.all_to_all_single", "comm_func.P2POp", "comm_ops.AllReduce", "comm_ops.BatchISendIRecv")),
    ],
    ids=["torch", "paddle", "mindspore"],
)  # fmt: skip
def test_real_examples_with_another_kind_are_as_recorded_on_this_machine(original, framework, kind, names) -> None:
    records = read_records(framework, version_of(framework))
    with RankPool(1, original=original) as pool:
        read = pool.run("shim.conformance.examples.reading.docstrings:docstrings_of", framework)[0].value
    found = [each for function, text in read for each in examples_in(text, framework, function, "a test")]
    chosen = [each for each in found if each.name.endswith(names) and each.ranks == 2]
    assert len(chosen) >= len(names)
    for example in chosen:
        outcome = run_in_copies(original, example, kind)
        record = records[outcome.example.name]
        judgement = judge_kind(judge(outcome, record), record)
        assert outcome.passed, outcome.failures
        assert (judgement.verdict, judgement.change) == (verdict_of_end(outcome), None)
        assert outcome.crossed


def test_what_is_no_longer_converted_is_noticed_on_this_machine(outcomes: dict[str, Outcome]) -> None:
    """An example of which nothing goes to the frontend any more passes, and is found out by the record."""
    outcome = outcomes["no tensor"]
    record = read_records("torch", version_of("torch"))["torch.distributed.all_reduce"]
    judgement = judge_kind(judge(outcome, record), record)
    assert judgement.reason == NO_TENSOR
    assert judgement.change is not None
