"""What torch's own code is given of the frontend's, or does of its own around a group of the engine's, in programs of two ranks."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from preloaded_programs import run_python

_BEGIN = """
import os, warnings
from datetime import timedelta
warnings.simplefilter("ignore")
rank, size = int(os.environ.pop("RANK")), int(os.environ.pop("WORLD_SIZE"))
import torch
import torch.distributed as dist
from torch.distributed import Backend, PrefixStore, ProcessGroup, TCPStore
from torch.distributed.distributed_c10d import ProcessGroupGloo, _new_process_group_helper, _world

def numbers():
    return torch.arange(3.0) + 10 * rank

port = int(os.environ["FREE_PORT"])
store = TCPStore("127.0.0.1", port, size, rank == 0)
"""

STATELESS = """
prefix = PrefixStore("x", store)
group = ProcessGroup(prefix, rank, size)
try:
    dist.all_reduce(numbers(), group=group)
except RuntimeError as error:
    print(str(error).splitlines()[1])
backend = ProcessGroupGloo(prefix, rank, size, timeout=timedelta(seconds=30))
group._set_default_backend(ProcessGroup.BackendType.GLOO)
backend._set_sequence_number_for_group()
group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, backend)
tensor = numbers()
dist.all_reduce(tensor, group=group)
print(tensor.tolist(), group.rank() == rank, group.size(), dist.is_initialized())
"""

SECOND_WORLD = """
dist.init_process_group("gloo", store=PrefixStore(f"of {rank}", store), rank=0, world_size=1)
world = dist.group.WORLD
group, _ = _new_process_group_helper(
    size, rank, [], Backend("gloo"), PrefixStore("y", store), group_name="weights", timeout=timedelta(seconds=30)
)
_world.pg_group_ranks[group] = {one: one for one in range(size)}
tensor, alone = numbers(), numbers()
dist.all_reduce(tensor, group=group)
dist.all_reduce(alone)
print(tensor.tolist(), alone.tolist() == numbers().tolist(), dist.get_world_size(), dist.group.WORLD is world)
dist.destroy_process_group(group)
dist.all_reduce(alone)
dist.destroy_process_group()
"""

OPTIONS = """
dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
options = torch._C._distributed_c10d.AllreduceOptions()
options.reduceOp = dist.ReduceOp.MAX
tensor = numbers()
dist.group.WORLD.allreduce([tensor], options).wait()
print(tensor.tolist())
"""

RESHARDING = """
import logging
logging.basicConfig(level=logging.WARNING)
dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
mesh = init_device_mesh("cpu", (size,))
whole = torch.arange(30.0).reshape(5, 6)
sharded = distribute_tensor(whole, mesh, [Shard(0)])
with CommDebugMode() as counts:
    moved = sharded.redistribute(mesh, [Shard(1)])
print([str(one) for one in counts.get_comm_counts()], moved.to_local().tolist() == whole.chunk(2, 1)[rank].tolist())
"""


def printed(folder: Path, program: str, *options: str, **variables: str) -> list[str]:
    import os

    (folder / "program.py").write_text(_BEGIN + program)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ended = run_python(
        *("-m", "shim", "run", "-n", "2", *options, "program.py"),
        cwd=folder,
        env={**os.environ, "FREE_PORT": str(port), **variables},
    )
    assert ended.returncode == 0, ended.stderr
    assert "alltoall" not in ended.stderr
    return sorted(line.partition("] ")[2] for line in ended.stdout.splitlines())


def test_a_stateless_group_of_a_substituted_program(tmp_path: Path) -> None:
    hint = "Give it a ProcessGroupGloo with _register_backend."
    assert printed(tmp_path, STATELESS, "--as-installed") == [hint, hint, *["[10.0, 12.0, 14.0] True 2 False"] * 2]


@pytest.mark.parametrize("way", ["--as-installed", "SHIM_TORCH_BACKEND"])
def test_a_second_world_beside_each_rank_s_own(tmp_path: Path, way: str) -> None:
    given = ({"SHIM_TORCH_BACKEND": "1"}, []) if way == "SHIM_TORCH_BACKEND" else ({}, [way])
    assert printed(tmp_path, SECOND_WORLD, *given[1], **given[0]) == ["[10.0, 12.0, 14.0] True 1 True"] * 2


def test_options_of_torch_s_own_module(tmp_path: Path) -> None:
    assert printed(tmp_path, OPTIONS, "--as-installed") == ["[10.0, 11.0, 12.0]"] * 2


def test_dtensors_move_between_dimensions_by_an_all_to_all(tmp_path: Path) -> None:
    assert printed(tmp_path, RESHARDING, SHIM_TORCH_BACKEND="1") == ["['_dtensor.shard_dim_alltoall'] True"] * 2
