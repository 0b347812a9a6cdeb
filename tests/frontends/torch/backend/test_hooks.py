"""Hooks of groups, which torch has since 2.14: they are called as on gloo, and more is told than there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as own
from linked_worlds import TWO, linked, total
from preloaded_programs import run_python
from test_parallel_features import assert_as_on_gloo

import shim.errors
import shim.frontends.torch.distributed as dist
from shim.frontends.torch._backend.serving import serve

_c10d: Any = torch._C._distributed_c10d
needs_hooks = pytest.mark.skipif(
    not hasattr(own.ProcessGroup, "register_pre_hook"), reason="groups have hooks since torch 2.14"
)


@needs_hooks
def test_hooks_see_what_they_see_on_gloo() -> None:
    assert_as_on_gloo(
        "shim",
        2,
        ("hooked_collectives", "hooked_ddp_step", "hooked_fully_shard_step", "hooks_that_call_raise_and_go"),
    )


@needs_hooks
@TWO
def test_the_other_ranks_read_which_rank_a_nan_or_a_hook_has_stopped(rank: int) -> None:
    with linked():
        group: Any = own.group.WORLD
        check = _c10d.NanCheckHook.attach(group)
        with pytest.raises(RuntimeError, match=r"NaN found in input tensor\. .*rank 1 of 2") as told:
            own.all_reduce(torch.tensor([float("nan") if rank == 1 else 1.0]))
        assert isinstance(told.value, shim.errors.MismatchError) == (rank == 0)
        assert total() == 2
        check.remove()
        own.all_reduce(torch.tensor([float("nan")]))
        if rank == 1:
            group.register_pre_hook(1, lambda call: 1 / 0)
        with pytest.raises(ZeroDivisionError if rank == 1 else shim.errors.MismatchError, match="division by zero"):
            own.barrier()
        if rank == 1:
            group.unregister_pre_hook(1)
        assert total() == 2


@needs_hooks
@TWO
def test_a_sum_with_a_factor_goes_past_hooks(rank: int) -> None:
    with linked():
        seen: list[Any] = []
        own.group.WORLD.register_pre_hook(1, seen.append)
        tensor = torch.full((2,), rank + 1.0)
        own.all_reduce(tensor, own._make_nccl_premul_sum(0.5))
        assert tensor.tolist() == [1.5, 1.5]
        assert [call.name.name for call in seen] == ["ALLREDUCE"]


@needs_hooks
@TWO
def test_abort_hooks_are_called_once_a_group_fails(rank: int) -> None:
    with linked():
        group: Any = own.new_group([0, 1])
        called: list[int] = []
        for number in (5, 2, 7):
            group.register_abort_hook(number, lambda number=number: called.append(number))
        group.register_abort_hook(3, lambda: 1 / 0)  # is logged
        group.unregister_abort_hook(7)
        own.all_reduce(torch.ones(1), group=group)
        with pytest.raises(shim.errors.MismatchError):
            own.all_reduce(torch.ones(1 + rank), group=group)
        assert called == []
        if rank == 0:
            work = own.all_reduce(torch.ones(1), group=group, async_op=True)
            own.barrier()
            with pytest.raises(shim.errors.EngineError):
                work.wait()
            assert called == [2, 5]
            with pytest.raises(shim.errors.EngineError):
                own.all_reduce(torch.ones(1), group=group)
            assert called == [2, 5, 2, 5]
        else:
            own.destroy_process_group(group)
            own.barrier()


@TWO
def test_what_groups_with_hooks_may_lack_is_refused_by_name(rank: int) -> None:
    with linked():
        group: Any = own.group.WORLD
        for name, arguments in (("new_window", ()), ("get_reconfigure_handle", ()), ("reconfigure", (None,))):
            if hasattr(own.ProcessGroup, name):
                with pytest.raises(shim.errors.UnsupportedError, match=name):
                    getattr(group, name)(*arguments)
        for name in ("supports_window", "supports_reconfigure", "supports_completion_hooks"):
            assert not getattr(group, name, False)
        assert getattr(group, "supports_abort_hooks", True)


@pytest.mark.skipif(
    not hasattr(own.distributed_c10d, "_maybe_attach_flight_recorder"), reason="torch records new groups since 2.15"
)
@TWO
@pytest.mark.parametrize("backend", ["shim", "gloo"])
def test_new_groups_are_recorded_where_it_is_asked_for(
    rank: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCH_FR_BUFFER_SIZE", raising=False)
    monkeypatch.delenv("TORCH_NCCL_TRACE_BUFFER_SIZE", raising=False)
    if backend == "gloo":
        serve()
    with linked(backend):
        world: Any = own.group.WORLD
        assert not world.hooks
        monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "100")
        _c10d._reset_fr_trace(backend="shim")
        recorded = own.new_group([0, 1]), own.split_group(split_ranks=[[0, 1]])
        for group in recorded:
            assert "FlightRecorderHook" in group.hooks
            assert total(group) == 2
        dump = json.loads(_c10d._dump_fr_trace_json(backend="shim"))
        names = [entry["process_group"][0] for entry in dump["entries"]]
        assert [names.count(group.group_name) for group in recorded] == [1, 1]
        dist.destroy_process_group(recorded[0])
        own.destroy_process_group(recorded[1])
        assert not own.distributed_c10d._world.pg_flight_recorder_hooks


RECORDED = """
import torch, torch.distributed as dist
dist.init_process_group("shim")
rank, tensor = dist.get_rank(), torch.ones(4)
for _ in range(3):
    dist.all_reduce(tensor)
dist.reduce_scatter_single(torch.zeros(2), tensor)
if rank == 1:
    torch._C._distributed_c10d._dump_fr_trace_file(rank, backend="shim")
else:
    try:
        dist.broadcast(tensor, 0)
    except dist.DistBackendError as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(not hasattr(_c10d, "_dump_fr_trace_file"), reason="torch records calls of any backend since 2.15")
def test_torchs_own_analyser_tells_which_rank_is_missing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RECORDED)
    variables = {"TORCH_FR_BUFFER_SIZE": "100", "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "record_")}
    run = ("-m", "shim", "run", "-n", "2", "program.py")
    ended = run_python(*run, cwd=tmp_path, env={**os.environ, **variables})
    assert ended.stdout.splitlines() == ["[0] PeerLostError"], ended.stderr  # by it the record of rank 0 is written
    analyser = "torch.distributed.flight_recorder.fr_trace"
    told = run_python("-m", analyser, str(tmp_path), "-p", "record_", cwd=tmp_path, env=dict(os.environ))
    said = told.stdout + told.stderr
    assert "Not all ranks joining collective, sequence number: 5" in said
    assert "collective: shim:broadcast" in said
    assert "missing ranks: {1}" in said
