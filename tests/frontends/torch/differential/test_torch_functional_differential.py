"""The functional collectives against those of real torch on gloo, in the same processes: results, gradients and errors.

Not run with real torch: sends and receives in a subgroup whose numbering differs (they hang), split sizes that do not add up and
rows that are no multiple of the ranks (the process ends), a root outside the group (it hangs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from gradients import weights
from rank_numbers import numbers
from real_torch import Call, Side, assert_close, outcome, sides

pytestmark = pytest.mark.filterwarnings("ignore")  # both warn of deprecations, torch also of missing gradients


def op(side: Side, name: str) -> Any:
    return getattr(side.dist.ReduceOp, name)


SAME: dict[str, Call] = {
    "broadcast": lambda s: s.nn.broadcast(s.x(3), 1),
    "all_reduce sum": lambda s: s.nn.all_reduce(s.x(2, 2)),
    "all_reduce avg": lambda s: s.nn.all_reduce(s.x(2, 2), op(s, "AVG")),
    "all_reduce max": lambda s: s.nn.all_reduce(s.x(2, wants_gradient=False), op(s, "MAX")),
    "all_reduce product": lambda s: s.nn.all_reduce(s.x(2, wants_gradient=False), op(s, "PRODUCT")),
    "all_reduce of nothing": lambda s: s.nn.all_reduce(s.x(0, 3)),
    "all_reduce of a view": lambda s: s.nn.all_reduce(s.x(2, 3).t()),
    "all_gather": lambda s: s.nn.all_gather(s.x(2, 2)),
    "all_gather of a number": lambda s: s.nn.all_gather(s.x()),
    "all_gather of an expanded tensor": lambda s: s.nn.all_gather(s.x(1).expand(3)),
    "gather": lambda s: s.nn.gather(s.x(2), 0),
    "gather elsewhere": lambda s: s.nn.gather(s.x(2), 1),
    "scatter": lambda s: s.nn.scatter([s.x(2, salt=i) for i in range(s.size)], 1),
    "reduce to the root": lambda s: s.nn.reduce(s.x(2), 1) if s.rank == 1 else s.nn.reduce(s.x(2), 1) * 0,
    "reduce_scatter": lambda s: s.nn.reduce_scatter(s.empty(2), [s.x(2, salt=i) for i in range(s.size)]),
    "reduce_scatter min": lambda s: s.nn.reduce_scatter(
        s.empty(2), [s.x(2, salt=i, wants_gradient=False) for i in range(s.size)], op(s, "MIN")
    ),
    "_all_gather_base": lambda s: s.nn._all_gather_base(s.empty(2 * s.size), s.x(2, wants_gradient=False)),
    "all_to_all": lambda s: s.nn.all_to_all(
        [s.empty(2) for _ in range(s.size)], [s.x(2, salt=i) for i in range(s.size)]
    ),
    "all_to_all_single": lambda s: s.nn.all_to_all_single(s.empty(s.size, 2), s.x(s.size, 2)),
    "all_to_all_single of unequal parts": lambda s: s.nn.all_to_all_single(
        s.empty(sum(s.rank + i for i in range(s.size))),
        s.x(sum(s.rank + i for i in range(s.size))),
        [s.rank + i for i in range(s.size)],
        [s.rank + i for i in range(s.size)],
    ),
    "f.all_reduce": lambda s: s.f.all_reduce(s.x(2, 2), "sum", s.everyone),
    "f.all_reduce avg": lambda s: s.f.all_reduce(s.x(2, wants_gradient=False), "avg", s.everyone),
    "f.all_reduce in capitals": lambda s: s.f.all_reduce(s.x(2, wants_gradient=False), "MAX", s.everyone),
    "f.all_reduce by name": lambda s: s.f.all_reduce(s.x(2), "sum", s.everyone.group_name),
    "f.all_reduce by ranks": lambda s: s.f.all_reduce(s.x(2), "sum", list(range(s.size))),
    "f.broadcast": lambda s: s.f.broadcast(s.x(2, wants_gradient=False), 1, s.everyone),
    "f.all_gather_single": lambda s: s.f.all_gather_single(s.x(2, 2), 0, s.everyone),
    "f.all_gather_single_autograd": lambda s: s.f.all_gather_single_autograd(s.x(2), 0, s.everyone),
    "f.all_gather_tensor": lambda s: s.f.all_gather_tensor(s.x(2), 0, s.everyone),
    "f.all_gather_single along 1": lambda s: s.f.all_gather_single(s.x(2, 2), 1, s.everyone),
    "f.all_gather_single along -1": lambda s: s.f.all_gather_single(s.x(2, 2), -1, s.everyone),
    "f.reduce_scatter_single": lambda s: s.f.reduce_scatter_single(s.x(s.size, 2), "sum", 0, s.everyone),
    "f.reduce_scatter_single along 1": lambda s: s.f.reduce_scatter_single(s.x(2, s.size), "sum", 1, s.everyone),
    "f.reduce_scatter_tensor": lambda s: s.f.reduce_scatter_tensor(s.x(s.size), "sum", 0, s.everyone),
    "f.reduce_scatter_single_autograd": lambda s: s.f.reduce_scatter_single_autograd(s.x(s.size), "sum", 0, s.everyone),
    "f.all_to_all_single": lambda s: s.f.all_to_all_single(s.x(s.size, 2), None, None, s.everyone),
    "f.all_to_all_single_autograd": lambda s: s.f.all_to_all_single_autograd(
        s.x(sum(s.rank + i for i in range(s.size))),
        [s.rank + i for i in range(s.size)],
        [s.rank + i for i in range(s.size)],
        s.everyone,
    ),
    "f.permute_tensor": lambda s: s.f.permute_tensor(s.x(3), [(i + 1) % s.size for i in range(s.size)], s.everyone),
    "f.permute_tensor to one": lambda s: s.f.permute_tensor(s.x(3), [1] * s.size, s.everyone),
    "f.all_reduce_coalesced": lambda s: s.f.all_reduce_coalesced([s.x(2), s.x(3, salt=1)], "sum", s.everyone),
    "f.all_gather_single_coalesced": lambda s: s.f.all_gather_single_coalesced([s.x(2), s.x(3, salt=1)], s.everyone),
    "f.all_gather_into_tensor_coalesced": lambda s: s.f.all_gather_into_tensor_coalesced([s.x(2)], s.everyone),
    "f.reduce_scatter_single_coalesced": lambda s: s.f.reduce_scatter_single_coalesced(
        [s.x(s.size), s.x(2 * s.size, salt=1)], "sum", [0, 0], s.everyone
    ),
    "f.reduce_scatter_tensor_coalesced": lambda s: s.f.reduce_scatter_tensor_coalesced(
        [s.x(s.size)], "sum", [0], s.everyone
    ),
    "f.all_reduce_inplace": lambda s: s.f.all_reduce_inplace(s.x(2) * 1),
    "f.all_gather_tensor_inplace": lambda s: s.f.all_gather_tensor_inplace(s.empty(2 * s.size), s.x(2)),
    "f.reduce_scatter_tensor_inplace": lambda s: s.f.reduce_scatter_tensor_inplace(s.empty(2), s.x(2 * s.size)),
    "f.all_to_all_inplace": lambda s: s.f.all_to_all_inplace(s.empty(s.size), s.x(s.size)),
    "f.all_gather_inplace": lambda s: s.f.all_gather_inplace([s.empty(2) for _ in range(s.size)], s.x(2)),
    "f.wait_tensor": lambda s: s.f.wait_tensor(s.f.all_reduce(s.x(2, wants_gradient=False), "sum", s.everyone)),
    "f.batch_p2p_ops_inplace": lambda s: s.f.batch_p2p_ops_inplace(
        ["isend", "irecv"],
        [(s.rank + 1) % s.size, (s.rank - 1) % s.size],
        [0, 0],
        [s.x(2, wants_gradient=False), s.empty(2)],
        None,
    ),
    "no group": lambda s: s.f.all_reduce(s.x(2), "sum", None),
    "a number for a group": lambda s: s.f.all_reduce(s.x(2), "sum", 3),
    "a tuple for a group": lambda s: s.f.all_reduce(s.x(2), "sum", (1, 2)),
    "an unknown name": lambda s: s.f.all_reduce(s.x(2), "sum", "nobody"),
    "ranks of no group": lambda s: s.f.all_reduce(s.x(2), "sum", [0]),
    "an unknown tag": lambda s: s.f.all_reduce(s.x(2), "sum", list(range(s.size)), "mine"),
    "prod": lambda s: s.f.all_reduce(s.x(2), "prod", s.everyone),
    "no such dimension": lambda s: s.f.all_gather_single(s.x(2, 2), 5, s.everyone),
    "no dimension": lambda s: s.f.reduce_scatter_single(s.x(), "sum", 0, s.everyone),
    "no equal parts": lambda s: s.f.reduce_scatter_single(s.x(s.size + 1), "sum", 0, s.everyone),
    "one list of sizes": lambda s: s.f.all_to_all_single(s.x(2), None, [1] * s.size, s.everyone),
    "sizes that are no integers": lambda s: s.f.all_to_all_single(s.x(2), [1.0] * s.size, [1] * s.size, s.everyone),
    "lists that do not match": lambda s: s.f.reduce_scatter_single_coalesced([s.x(2)], "sum", [0, 0], s.everyone),
    "asynchronous in place": lambda s: s.f.all_reduce_inplace(s.x(2), "sum", None, True),
    "outputs of another shape": lambda s: s.f.all_gather_inplace([s.empty(3)] * s.size, s.x(2)),
    "two ranks to send to": lambda s: s.f.isend_inplace(s.x(2), 1, 0, None, 1),
    "two ranks to receive from": lambda s: s.f.irecv_inplace(s.x(2), 1, 0, None, 1),
}


@pytest.mark.ranks(2, 3)
@pytest.mark.differential("torch", calls=len(SAME))
def test_the_same_as_torch(rank: int, world_size: int) -> None:
    with sides(rank, world_size) as (ours, theirs):
        for name, call in SAME.items():
            expected, seen = outcome(theirs, call), outcome(ours, call)
            try:
                if isinstance(expected, type):
                    assert isinstance(seen, type), seen
                    assert issubclass(seen, expected), (seen, expected)
                else:
                    assert_close(seen, expected)
            except AssertionError as difference:
                raise AssertionError(f"{name}: {difference}") from difference


def values(rank: int, *shape: int, salt: int = 0) -> np.ndarray:
    """What ``Side.x`` holds on *rank*."""
    return numbers(rank + 7 * salt, shape) + 1


def total_weight(size: int, *shape: int) -> np.ndarray:
    """The sum of what all ranks' losses multiply their first output by."""
    return np.sum([weights(rank, 0, shape) for rank in range(size)], axis=0)


def share(rank: int, size: int, best: Any, *shape: int) -> np.ndarray:
    """1 where *rank* alone holds the extremum, a part of it where several ranks do."""
    everyone = np.stack([values(other, *shape) for other in range(size)])
    holds = everyone == best(everyone, axis=0)
    return (holds / holds.sum(axis=0))[rank]


@dataclass
class Different:
    """What is intended to differ: the call, real torch's gradient or error, ours, and why ours is not torch's."""

    call: Call
    theirs: Callable[[int, int], Any]
    ours: Callable[[int, int], Any]
    reason: str


def others_product(rank: int, size: int) -> np.ndarray:
    return np.prod([values(other, 2) for other in range(size) if other != rank], axis=0)


DIFFERENT: dict[str, Different] = {
    "all_reduce max": Different(
        lambda s: s.nn.all_reduce(s.x(2), op(s, "MAX")),
        lambda rank, size: np.max([weights(r, 0, (2,)) for r in range(size)], axis=0),
        lambda rank, size: total_weight(size, 2) * share(rank, size, np.max, 2),
        "torch combines the gradients by the op itself",
    ),
    "all_reduce product": Different(
        lambda s: s.nn.all_reduce(s.x(2), op(s, "PRODUCT")),
        lambda rank, size: np.prod([weights(r, 0, (2,)) for r in range(size)], axis=0),
        lambda rank, size: total_weight(size, 2) * others_product(rank, size),
        "torch combines the gradients by the op itself",
    ),
    "reduce min": Different(
        lambda s: s.nn.reduce(s.x(2), 1, op(s, "MIN")) * (s.rank == 1),
        lambda rank, size: weights(1, 0, (2,)),
        lambda rank, size: weights(1, 0, (2,)) * share(rank, size, np.min, 2),
        "torch ignores the op",
    ),
    "reduce_scatter max": Different(
        lambda s: s.nn.reduce_scatter(s.empty(2), [s.x(2, salt=i) for i in range(s.size)], op(s, "MAX")),
        lambda rank, size: weights(0, 0, (2,)),
        lambda rank, size: weights(0, 0, (2,)) * share(rank, size, np.max, 2),
        "torch ignores the op",
    ),
    "_all_gather_base": Different(
        lambda s: s.nn._all_gather_base(s.empty(2 * s.size), s.x(2)),
        lambda rank, size: RuntimeError,
        lambda rank, size: total_weight(size, 2 * size)[2 * rank : 2 * rank + 2],
        "torch has a gradient for NCCL and XCCL only",
    ),
    "f.all_reduce avg": Different(
        lambda s: s.f.all_reduce(s.x(2), "avg", s.everyone),
        lambda rank, size: RuntimeError,
        lambda rank, size: total_weight(size, 2) / size,
        "torch has no gradient for another op than sum",
    ),
    "f.reduce_scatter_single max": Different(
        lambda s: s.f.reduce_scatter_single(s.x(s.size), "max", 0, s.everyone),
        lambda rank, size: RuntimeError,
        lambda rank, size: np.concatenate([weights(r, 0, (1,)) for r in range(size)]) * share(rank, size, np.max, size),
        "torch has no gradient for another op than sum",
    ),
    "f.broadcast": Different(
        lambda s: s.f.broadcast(s.x(2), 1, s.everyone),
        lambda rank, size: weights(rank, 0, (2,)),
        lambda rank, size: total_weight(size, 2) * (rank == 1),
        "torch passes the gradient through on every rank, with a warning",
    ),
}


@pytest.mark.ranks(2, 3)
@pytest.mark.differential("torch", calls=len(DIFFERENT))
def test_gradients_that_are_not_torchs(rank: int, world_size: int) -> None:
    with sides(rank, world_size) as (ours, theirs):
        for name, case in DIFFERENT.items():
            expected, seen = outcome(theirs, case.call), outcome(ours, case.call)
            assert isinstance(seen, tuple), (name, seen)
            assert isinstance(expected, tuple), (name, expected)
            assert seen[0] == expected[0], name  # the results are the same
            for found, wanted in ((seen[1], case.ours), (expected[1], case.theirs)):
                right = wanted(rank, world_size)
                if isinstance(right, np.ndarray):
                    np.testing.assert_allclose(np.array(found[0]), right, rtol=1e-12, atol=1e-12, err_msg=name)
                else:
                    assert found == right, (name, found)


UNLIKE: dict[str, tuple[Call, Any, Any, str]] = {
    "reduce elsewhere": (
        lambda s: s.nn.reduce(s.x(2, wants_gradient=False), 0),
        lambda rank: values(1, 2) if rank else values(0, 2) + values(1, 2),
        lambda rank: np.zeros(2) if rank else values(0, 2) + values(1, 2),
        "torch returns a copy of the input, through which no gradient flows; zeros do not pretend to be a result",
    ),
    "permute a matrix": (
        lambda s: s.f.permute_tensor(s.x(2, 2, wants_gradient=False), [1, 0], s.everyone),
        lambda rank: RuntimeError,
        lambda rank: values(1 - rank, 2, 2),
        "torch counts elements where rows are meant",
    ),
    "permute in a group's name": (
        lambda s: s.f.permute_tensor(s.x(2, wants_gradient=False), [1, 0], s.everyone.group_name),
        lambda rank: ValueError,
        lambda rank: values(1 - rank, 2),
        "torch takes a name everywhere else",
    ),
    "gather numbers": (
        lambda s: s.f.all_gather_single(s.x(wants_gradient=False), 0, s.everyone),
        lambda rank: RuntimeError,
        lambda rank: np.array([values(0), values(1)]),
        "gloo refuses what torch documents for tensors without dimensions",
    ),
    "scatter to ranks that pass None": (
        lambda s: s.nn.scatter([s.x(2, wants_gradient=False)] * 2 if s.rank == 0 else None),
        lambda rank: TypeError,
        lambda rank: values(0, 2),
        "torch documents None and fails on it",
    ),
    "an op that is a number": (
        lambda s: s.f.all_reduce(s.x(2), 7, s.everyone),
        lambda rank: AttributeError,
        lambda rank: TypeError,
        "torch asks the op for its lower(); a wrong type is a TypeError",
    ),
}


@pytest.mark.ranks(2)
@pytest.mark.differential("torch", calls=len(UNLIKE) - 1)
def test_results_that_are_not_torchs(rank: int, world_size: int) -> None:
    with sides(rank, world_size) as (ours, theirs):
        for name, (call, their_result, our_result, _reason) in UNLIKE.items():
            if name != "scatter to ranks that pass None":  # the root would wait for the others
                assert_outcome(outcome(theirs, call), their_result(rank), f"torch: {name}")
            assert_outcome(outcome(ours, call), our_result(rank), f"ours: {name}")


def assert_outcome(found: Any, expected: Any, name: str) -> None:
    if isinstance(expected, type):
        assert isinstance(found, type), (name, found)
        assert issubclass(found, expected), name
    else:
        assert found[0][0][2] == expected.tolist(), name


@pytest.mark.ranks(3)
@pytest.mark.differential("torch", calls=6)
def test_in_a_subgroup(rank: int, world_size: int) -> None:
    """Ranks 1 and 2, which are 0 and 1 there; real torch's broadcast takes ranks of the group, as ours does."""
    with sides(rank, world_size) as (ours, theirs):
        if rank == 0:
            return
        calls: list[Call] = [
            lambda s: s.f.broadcast(s.x(2, wants_gradient=False), 1, s.upper),
            lambda s: s.f.all_gather_single(s.x(2), 0, s.upper),
            lambda s: s.f.permute_tensor(s.x(2), [1, 0], s.upper),
            lambda s: s.nn.all_gather(s.x(2, wants_gradient=False), s.upper),
            lambda s: s.nn.all_reduce(s.x(2), group=s.upper),
        ]
        for call in calls:
            assert_close(outcome(ours, call), outcome(theirs, call))

        def with_gradient(s: Side) -> Any:
            return s.nn.all_gather(s.x(2), s.upper)

        # torch's backward takes ranks of the group for the world's, and finds no rank 0 in the group.
        assert outcome(theirs, with_gradient)[1] is ValueError
        right = [weights(other, rank - 1, (2,)) for other in (1, 2)]
        np.testing.assert_allclose(outcome(ours, with_gradient)[1][0], np.sum(right, axis=0), rtol=1e-12)


@pytest.mark.ranks(2)
@pytest.mark.differential("torch", calls=6)
def test_the_tensor_in_flight(rank: int, world_size: int) -> None:
    with sides(rank, world_size) as both:
        found = []
        for side in both:
            result = side.f.all_reduce(side.x(2, wants_gradient=False), "sum", side.everyone)
            assert isinstance(result, torch.Tensor)
            assert type(result).__name__ == "AsyncCollectiveTensor"
            plain = result.wait()
            found.append(
                (
                    *(type(one) for one in (plain, result + 1, result.numpy(), result.tolist())),
                    *(result.shape, result.dtype, result.stride(), result.is_contiguous()),
                    *(repr(result), result.numpy().tolist(), side.f.wait_tensor(result).tolist(), result.completed),
                )
            )
        assert found[0] == found[1]
