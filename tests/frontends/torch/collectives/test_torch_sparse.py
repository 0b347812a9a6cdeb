"""all_reduce of sparse COO tensors gives every rank the coalesced sum, as torch's gloo does."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, TensorError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")  # torch says so once


def sparse(rank: int, dtype: torch.dtype = torch.float32, dense: int = 0, elements: int | None = None) -> torch.Tensor:
    """A tensor of five rows with other elements on each rank, some of them at the same place."""
    count = rank + 2 if elements is None else elements
    indices = (torch.arange(count) * (rank + 1) % 5).reshape(1, count)
    values = torch.arange(1, count * 2**dense + 1).reshape([count] + [2] * dense) * (rank + 1)
    return torch.sparse_coo_tensor(indices, values.to(dtype), [5] + [2] * dense)


def assert_sum(tensor: torch.Tensor, parts: list[torch.Tensor]) -> None:
    assert tensor.layout is torch.sparse_coo
    assert tensor.is_coalesced()
    assert tensor.dtype is parts[0].dtype
    total = sum(part.to_dense().to(torch.complex128) for part in parts)
    assert isinstance(total, torch.Tensor)
    wanted = total if tensor.is_complex() else total.real
    assert torch.equal(tensor.to_dense(), wanted.to(tensor.dtype))
    held = torch.cat([part.coalesce().indices() for part in parts], dim=1).unique(dim=1)
    assert torch.equal(tensor.indices(), held)


DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


@pytest.mark.ranks(3)
def test_every_rank_gets_the_coalesced_sum(rank: int, world_size: int) -> None:
    with world():
        cases: list[dict[str, Any]] = [{"dtype": dtype} for dtype in DTYPES]
        cases += [{"dense": 1}, {"dense": 3}, {"elements": 0}, {"dtype": torch.bfloat16, "dense": 2}]
        for case in cases:
            parts = [sparse(other, **case) for other in range(world_size)]
            for call in (
                lambda mine: dist.all_reduce(mine),
                lambda mine: dist.all_reduce(mine, async_op=True).wait(),
                lambda mine: dist.all_reduce(mine, async_op=True).get_future().wait(),
                lambda mine: dist.group.WORLD.allreduce([mine]).wait(),
            ):
                mine = sparse(rank, **case)
                before = mine._version
                call(mine)
                assert_sum(mine, parts)
                assert mine._version > before


@pytest.mark.ranks(3)
def test_some_ranks_have_no_elements_and_a_tensor_of_one_has_no_dimension(rank: int, world_size: int) -> None:
    with world():
        mine = sparse(rank, elements=3 * (rank % 2))
        dist.all_reduce(mine)
        assert_sum(mine, [sparse(other, elements=3 * (other % 2)) for other in range(world_size)])
        scalar = torch.sparse_coo_tensor(torch.zeros(0, 1, dtype=torch.int64), torch.tensor([rank + 1.0]), [])
        dist.all_reduce(scalar)
        assert scalar.to_dense().item() == sum(range(1, world_size + 1))


@pytest.mark.ranks(3)
def test_the_gradient_of_a_sparse_embedding_in_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        members = [world_size - 1, 0]
        group = dist.new_group(members)
        embedding = torch.nn.Embedding(4, 2, sparse=True)
        embedding(torch.tensor([rank, rank, 3])).sum().backward()
        gradient = embedding.weight.grad
        assert gradient is not None
        if rank in members:
            works = [dist.all_reduce(gradient, group=group, async_op=True)]
            works.append(dist.all_reduce(torch.ones(3), group=group, async_op=True))
            for work in reversed(works):
                work.wait()
            wanted = torch.zeros(4, 2)
            for other in members:
                wanted[other] += 2
                wanted[3] += 1
            assert torch.equal(gradient.to_dense(), wanted)
            assert works[0].is_completed()
            assert works[0].is_success()


@pytest.mark.ranks(3)
def test_a_sum_that_is_polled_is_there(rank: int, world_size: int) -> None:
    with world():
        mine = sparse(rank)
        work = dist.all_reduce(mine, async_op=True)
        while not work.is_completed():
            pass
        assert_sum(mine, [sparse(other) for other in range(world_size)])


@pytest.mark.ranks(3)
def test_ranks_that_disagree_are_told_and_the_group_is_usable(rank: int, world_size: int) -> None:
    odd = rank == world_size - 1
    with world():
        for mine in (
            torch.eye(4 + odd).to_sparse(),  # another shape
            torch.eye(4).to_sparse(1 + odd),  # another number of sparse dimensions
            sparse(rank, dense=int(odd)),
            sparse(rank, torch.float64 if odd else torch.float32),
            torch.ones(5) if odd else sparse(rank),
        ):
            for async_op in (False, True):
                with pytest.raises(MismatchError) as raised:
                    dist.all_reduce(mine, async_op=async_op).wait()  # type: ignore[union-attr]
        assert re.search(
            rf"differ: all_reduce of a sparse tensor on .*, all_reduce on rank {world_size - 1}\.", str(raised.value)
        )
        mine = sparse(rank)
        dist.all_reduce(mine)
        assert_sum(mine, [sparse(other) for other in range(world_size)])


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
def test_what_gloo_refuses_of_sparse_tensors_is_refused(rank: int, world_size: int) -> None:
    with world():
        mine = sparse(rank)
        for op in (dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
            with pytest.raises(UnsupportedError, match="op must be SUM for sparse tensors, got"):
                dist.all_reduce(mine, op)
        alone = r"must be dense in coalesced calls .*\nCall all_reduce for the sparse tensor alone"
        with pytest.raises(UnsupportedError, match=alone), dist._coalescing_manager():
            dist.all_reduce(mine)
        for tensors in ([mine], [torch.ones(2), mine]):
            with pytest.raises(UnsupportedError, match=alone):
                dist.group.WORLD.allreduce_coalesced(tensors)
            with pytest.raises(UnsupportedError, match=alone), pytest.warns(FutureWarning, match="deprecates"):
                dist.all_reduce_coalesced(tensors)
        for call in (
            lambda: dist.all_reduce(torch.eye(3).to_sparse_csr()),
            lambda: dist.broadcast(mine, 0),
            lambda: dist.reduce(mine, 0),
            lambda: dist.all_gather([sparse(0), sparse(1)], mine),
            lambda: dist.reduce_scatter(mine, [mine] * world_size),
        ):
            with pytest.raises(TensorError, match="must be dense, got layout"):
                call()
        dist.all_reduce(mine)
        assert_sum(mine, [sparse(0), sparse(1)])
