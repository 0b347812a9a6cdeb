"""Functions of torch's own that newer versions have, on groups of the engine's."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as own
from linked_worlds import TWO, linked, place, total
from torch.distributed.tensor.debug import CommDebugMode

import shim.errors
import shim.frontends.torch.distributed as dist
from shim.frontends.torch._backend.making import link, unlink


@pytest.mark.skipif(not hasattr(own, "split_group"), reason="torch has split_group since 2.5")
@TWO
def test_a_group_that_torchs_own_function_splits_off(rank: int) -> None:
    with linked():
        try:
            part = own.split_group(split_ranks=[[1, 0]], group_desc="turned")
        except RuntimeError as error:
            if "No device associated" not in str(error):
                raise
            pytest.skip("torch splits groups of the CPU since 2.15")
        assert (part.rank(), part.group_desc, own.get_backend(part)) == (1 - rank, "turned", "shim")
        assert own.get_process_group_ranks(part) == dist.get_process_group_ranks(part) == [1, 0]
        assert total(part) == total(part, dist) == 2
        alone = own.split_group(split_ranks=[[0]])
        assert (alone == own.GroupMember.NON_GROUP_MEMBER) == (rank == 1)
        again = own.split_group(part, split_ranks=[[0, 1]], backend="shim")
        assert total(again) == 2
        own.destroy_process_group(part)
        assert total(again) == 2
        with pytest.raises(ValueError, match="Invalid process group"):
            own.destroy_process_group(part)


@pytest.mark.skipif(not hasattr(own.device_mesh.DeviceMesh, "abort"), reason="torch has DeviceMesh.abort since 2.15")
@TWO
def test_a_mesh_that_is_aborted_ends_its_groups(rank: int) -> None:
    with linked():
        mesh = own.init_device_mesh("cpu", (2, 1), mesh_dim_names=("rows", "columns"))
        column = mesh.get_group("columns")
        mesh.abort()
        own.distributed_c10d._update_default_pg(None)  # which torch itself keeps, if the mesh had it
        with pytest.raises(shim.errors.StateError):
            column.allreduce(torch.ones(1))


@pytest.mark.skipif(not hasattr(own, "get_backend_impl"), reason="torch has get_backend_impl since 2.14")
@TWO
def test_the_object_that_torch_takes_for_the_backend(rank: int) -> None:
    with linked():
        backend: Any = own.get_backend_impl()
        assert backend is own.get_backend_impl(device=torch.device("cpu"))
        assert (backend.rank(), backend.size(), backend.name()) == (rank, 2, "shim")
        assert total() == 2
        with pytest.raises(shim.errors.UnsupportedError, match="no backend for device"):
            own.get_backend_impl(device=torch.device("meta"))
    link()
    try:
        with pytest.raises(shim.errors.UnsupportedError, match="enable_reconfigure must be False"):
            own.init_process_group("shim", enable_reconfigure=True, **place())
    finally:
        unlink()


@pytest.mark.skipif(not hasattr(own, "set_timeout"), reason="torch has set_timeout since 2.14")
@TWO
def test_a_timeout_that_torchs_own_function_sets(rank: int) -> None:
    with linked():
        group = own.new_group([0, 1])
        own.set_timeout(timedelta(seconds=0.2), group)
        if rank == 0:
            with pytest.raises(shim.errors.CollectiveTimeoutError):
                own.all_reduce(torch.ones(1), group=group)
        own.barrier()


@pytest.mark.skipif(not hasattr(own, "gather_single"), reason="torch has gather_single since 2.14")
@pytest.mark.parametrize("looking_on", ["nothing", "a mode", "a hook"])
@TWO
def test_torchs_own_gather_into_one_tensor(rank: int, looking_on: str) -> None:
    with linked(), CommDebugMode() if looking_on == "a mode" else nullcontext() as counts:
        seen: list[Any] = []
        if looking_on == "a hook":
            own.group.WORLD.register_pre_hook(1, lambda call: seen.append((call.name.name, call.root)))
        output = torch.zeros(2, 3) if rank == 1 else None
        own.gather_single(torch.arange(3.0) + 10 * rank, output, dst=1)
        if output is not None:
            assert output.tolist() == [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]
        with pytest.raises(ValueError if rank == 1 else shim.errors.MismatchError, match="output"):
            own.gather_single(torch.ones(3), torch.zeros(5) if rank == 1 else None, dst=1)
        assert total() == 2
        assert seen[:1] == ([("GATHER", 1)] if looking_on == "a hook" else [])
        assert counts is None or counts.get_total_counts() > 0
