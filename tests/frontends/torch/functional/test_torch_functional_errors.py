"""Wrong calls of torch's functional collectives: torch's class and ours, on every rank, and the group goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import make
from torch_world import assert_usable, world
from wrong_calls import assert_refused, named

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
import shim.frontends.torch.distributed.nn.functional as nn
from shim.errors import MismatchError, PeerLostError, ShimError

WRONG_GROUPS: dict[str, tuple[type[Exception], Any]] = {
    "None": (ValueError, None),
    "a number": (ValueError, 3),
    "a tuple of numbers": (ValueError, (0, 1)),
    "no such name": (RuntimeError, "nobody"),
    "ranks of no group": (ValueError, [0]),
    "ranks that are none": (ValueError, ["0"]),
    "lists of different lengths": (ValueError, [[0], [1, 2]]),
    "lists without me": (ValueError, [[7], [8]]),
}


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch deprecates a list:FutureWarning")
@pytest.mark.parametrize("case", WRONG_GROUPS)
def test_what_is_no_group(rank: int, world_size: int, case: str) -> None:
    kind, group = WRONG_GROUPS[case]
    with world():
        with pytest.raises(kind, match="group") as caught:
            functional.all_reduce(np.ones(1), "sum", group)
        assert isinstance(caught.value, ShimError)
        with pytest.raises(NotImplementedError, match="tag must be ''"):
            functional.all_reduce(np.ones(1), "sum", dist.group.WORLD, "mine")
        with pytest.raises(ValueError, match="tag 'mine'"):
            functional.all_reduce(np.ones(1), "sum", [0, 1], "mine")


X = np.ones(2)


def group() -> Any:
    return dist.group.WORLD


WRONG: dict[str, tuple[type[Exception], str, Any]] = {
    "no tensor": (TypeError, "self must be a tensor", lambda n: functional.all_reduce([1.0], "sum", group())),
    "no such op": (RuntimeError, "reduceOp must be one of", lambda n: functional.all_reduce(X, "prod", group())),
    "an op that is none": (
        TypeError,
        "reduceOp must be a ReduceOp or one of sum",
        lambda n: functional.reduce_scatter_single(X, 3, 0, group()),
    ),
    "bits of floats": (ValueError, "BAND", lambda n: functional.all_reduce(X, "band", group())),
    "no such root": (ValueError, "group rank must be", lambda n: functional.broadcast(X, n, group())),
    "a root that is none": (TypeError, "src must be an integer", lambda n: functional.broadcast(X, "0", group())),
    "no such dimension": (IndexError, "gather_dim", lambda n: functional.all_gather_single(X, 1, group())),
    "a dimension that is none": (TypeError, "gather_dim", lambda n: functional.all_gather_single(X, None, group())),
    "no such dimension to cut": (
        IndexError,
        "scatter_dim",
        lambda n: functional.reduce_scatter_single(X, "sum", 5, group()),
    ),
    "nothing to cut": (
        IndexError,
        "dimension to cut",
        lambda n: functional.reduce_scatter_single(np.ones(()), "sum", 0, group()),
    ),
    "no equal parts": (
        AssertionError,
        "multiple of",
        lambda n: functional.reduce_scatter_single(np.ones(2 * n + 1), "sum", 0, group()),
    ),
    "another dimension of numpy's": (
        NotImplementedError,
        "scatter_dim must be 0",
        lambda n: functional.reduce_scatter_single(np.ones((1, n)), "sum", 1, group()),
    ),
    "no list": (TypeError, "list of tensors", lambda n: functional.all_reduce_coalesced(X, "sum", group())),
    "no list of tensors": (TypeError, "a tensor", lambda n: functional.all_gather_single_coalesced([1], group())),
    "too many dimensions": (
        AssertionError,
        "scatter_dim",
        lambda n: functional.reduce_scatter_single_coalesced([np.ones(n)], "sum", [0, 0], group()),
    ),
    "one in the list cannot be cut": (
        AssertionError,
        "multiple of",
        lambda n: functional.reduce_scatter_single_coalesced([np.ones(n), np.ones(n + 1)], "sum", [0, 0], group()),
    ),
    "one list of sizes": (
        AssertionError,
        "output_split_sizes",
        lambda n: functional.all_to_all_single(np.ones(n), None, [1] * n, group()),
    ),
    "sizes that are none": (
        AssertionError,
        "input_split_sizes",
        lambda n: functional.all_to_all_single(np.ones(n), [1] * n, [1.0] * n, group()),
    ),
    "sizes that are negative": (
        ValueError,
        "not negative",
        lambda n: functional.all_to_all_single(np.ones(n), [1] * n, [-1] * n, group()),
    ),
    "sizes that do not add up": (
        ValueError,
        "input_split_sizes",
        lambda n: functional.all_to_all_single(np.ones(n), [2] * n, [2] * n, group()),
    ),
    "different sizes for the rank itself": (
        ValueError,
        "output_split_sizes and input_split_sizes must be the same for the rank itself, got 1 and 2",
        lambda n: functional.all_to_all_single(np.ones(2 * n), [1] * n, [2] * n, group()),
    ),
    "rows that are no multiple": (
        ValueError,
        "multiple of",
        lambda n: functional.all_to_all_single(np.ones(n + 1), None, None, group()),
    ),
    "rows that are not there": (
        ValueError,
        "dimension to cut",
        lambda n: functional.all_to_all_single(np.ones(()), None, None, group()),
    ),
    "half a permutation": (ValueError, "src_dst", lambda n: functional.permute_tensor(X, [0], group())),
    "a permutation to nobody": (ValueError, "src_dst", lambda n: functional.permute_tensor(X, [n] * n, group())),
    "asynchronous in place": (
        AssertionError,
        "async_op",
        lambda n: functional.all_reduce_inplace(X.copy(), async_op=True),
    ),
    "an output that repeats": (
        ValueError,
        "output must have shape",
        lambda n: functional.all_to_all_inplace(np.ones((2, n)), np.ones(n)),
    ),
    "outputs of another shape": (
        AssertionError,
        "tensor_list must have shape",
        lambda n: functional.all_gather_inplace([np.ones(3)] * n, X),
    ),
    "outputs missing": (
        ValueError,
        "tensor_list must have a tensor for each",
        lambda n: functional.all_gather_inplace([np.ones(2)], X),
    ),
}


@pytest.mark.ranks(2)
def test_a_wrong_argument_on_one_rank_is_an_error_on_all(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in WRONG.items():
            with named(name):
                if rank == 0:
                    told = assert_refused(kind, words, wrong, world_size)
                    assert told.startswith("torch.distributed._functional_collectives.")
                else:
                    assert_refused(MismatchError, None, dist.barrier)
                assert_usable(rank, world_size)


def one(tensors: int = 1) -> Any:
    made = [make("torch", np.ones(2)) for _ in range(tensors)]
    return made[0] if tensors == 1 else made


def odd_torch_tensors() -> dict[str, Any]:
    return {
        "sparse": torch.eye(2).to_sparse(),
        "mkldnn": torch.ones(2, 2).to_mkldnn(),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]),
        "float8": torch.ones(2).to(torch.float8_e5m2),
        "quantized": torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8),
    }


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning", "ignore:.*quantiz:UserWarning")
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
@pytest.mark.parametrize("kind", ["sparse", "mkldnn", "nested", "float8", "quantized"])
def test_torch_tensors_that_cannot_be_reduced(rank: int, world_size: int, kind: str) -> None:
    tensor = odd_torch_tensors()[kind]
    with world():
        for call in (lambda: functional.all_reduce(tensor, "sum", group()), lambda: nn.all_reduce(tensor)):
            if rank == 0:
                with pytest.raises((TypeError, ValueError)) as caught:
                    call()
                assert isinstance(caught.value, ShimError)
                assert "must be dense, got a nested tensor" in str(caught.value) or kind != "nested"
            else:
                with pytest.raises(MismatchError):
                    dist.barrier()
        assert_usable(rank, world_size)


PAIRWISE: dict[str, tuple[type[Exception], str, Any]] = {
    "two ranks": (ValueError, "both", lambda: functional.isend_inplace(one(), 1, group_dst=0)),
    "no rank": (ValueError, "must be given", lambda: functional.irecv_inplace(one(), None)),
    "no such rank": (ValueError, "rank 9 is not in group", lambda: functional.irecv_inplace(one(), 9)),
    "no such group rank": (ValueError, "group rank", lambda: functional.isend_inplace(one(), None, group_dst=5)),
    "a rank that is none": (TypeError, "integer", lambda: functional.isend_inplace(one(), "1")),
    "myself": (ValueError, "another rank", lambda: functional.isend_inplace(one(), dist.get_rank())),
    "a tag that is none": (TypeError, "tag", lambda: functional.isend_inplace(one(), 1 - dist.get_rank(), "7")),
    "another framework": (TypeError, "torch tensor", lambda: functional.isend_inplace(X, 0)),
    "another op": (ValueError, "'send'", lambda: functional.batch_p2p_ops_inplace(["send"], [0], [0], [one()], None)),
    "no lists": (TypeError, "must be lists", lambda: functional.batch_p2p_ops_inplace("isend", 0, 0, one(), None)),
    "unequal lengths": (
        AssertionError,
        "one length",
        lambda: functional.batch_p2p_ops_inplace(["isend"], [0], [0], one(2), None),
    ),
}


@pytest.mark.ranks(2)
def test_a_wrong_send_is_an_error_here_alone(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in PAIRWISE.items():
            with named(name):
                assert_refused(kind, words, wrong)
                assert_usable(rank, world_size)


def test_before_initialisation() -> None:
    with pytest.raises(ValueError, match="got None"):
        functional.all_reduce(X, "sum", None)
    with pytest.raises(RuntimeError, match="name of a process group"):
        functional.all_reduce(X, "sum", "world")
    for call in (
        lambda: functional.all_reduce_inplace(X),
        lambda: functional.isend_inplace(one(), 1),
        lambda: functional.batch_p2p_ops_inplace([], [], [], [], None),
    ):
        with pytest.raises(AssertionError, match="not initialised"):
            call()


def test_graphs_cannot_wait() -> None:
    with functional.allow_inflight_collective_as_graph_input_ctx(False):
        pass
    with pytest.raises(NotImplementedError, match="value must be False"):
        functional.allow_inflight_collective_as_graph_input_ctx()


COALESCED: dict[str, Any] = {
    "all_reduce": lambda tensors: functional.all_reduce_coalesced(tensors, "sum", group()),
    "all_gather": lambda tensors: functional.all_gather_single_coalesced(tensors, group()),
    "reduce_scatter": lambda tensors: functional.reduce_scatter_single_coalesced(
        tensors, "sum", [0] * len(tensors), group()
    ),
}


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("form", COALESCED)
def test_lists_of_different_lengths(rank: int, world_size: int, form: str, kind: str) -> None:
    """Every rank is told, and what one has too many of meets no later collective."""
    with world():
        with pytest.raises(MismatchError, match="coalesced"):
            COALESCED[form]([make(kind, np.ones(6)) for _ in range(1 + (rank == 1))])
        for _ in range(3):
            assert_usable(rank, world_size)
        assert COALESCED[form]([]) == []


@pytest.mark.ranks(3)
@pytest.mark.parametrize("form", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_wrong_tensor_in_a_list(rank: int, world_size: int, form: str, place: int) -> None:
    """Its rank refuses it once, and the other ranks' lists are not begun."""
    with world():
        tensors = [torch.ones(6) for _ in range(3)]
        if rank == 1:
            tensors[place] = tensors[place].to(torch.float8_e5m2)
        with pytest.raises(ValueError if rank == 1 else MismatchError, match="coalesced"):
            COALESCED[form](tensors)
        for _ in range(4):
            assert_usable(rank, world_size)


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_rank_that_has_left(rank: int, world_size: int, kind: str) -> None:
    """What torch calls a DistBackendError is one here as in every other function."""
    tensor = make(kind, np.ones(2))
    calls = (
        lambda: functional.wait_tensor(functional.all_reduce(tensor, "sum", group())),
        lambda: functional.all_reduce_coalesced([tensor], "sum", group()),
        lambda: nn.all_reduce(tensor),
    )
    with world():
        for call in calls if rank == 0 else ():
            with pytest.raises(dist.DistBackendError, match="all_reduce") as caught:
                call()
            assert isinstance(caught.value, PeerLostError)
            assert caught.value.ranks == (1,)
