"""``shim rehearse --no-memory``: torch's tensors without elements, on devices that are not there, and numbers that are made up."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

DEADLINE = 240.0  # seconds


def rehearsed(program: str, folder: Path, *options: str) -> dict[str, Any]:
    """Return what is found in *program*, whose assertions hold."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "-m", "shim", "rehearse", "--json", *options, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert not done.stderr, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["failed"] == [], "\n".join(found["failed"][0]["last_lines"])
    return found


def test_collectives_take_fake_and_meta_tensors(tmp_path: Path) -> None:
    found = rehearsed(
        """
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        import shim.frontends.torch.distributed as dist

        dist.init_process_group("gloo")
        rank, size = dist.get_rank(), dist.get_world_size()
        def every_collective(device):
            huge = torch.empty(1 << 34, dtype=torch.bfloat16, device=device)
            dist.all_reduce(huge)
            dist.broadcast(huge, 0)
            part, whole = torch.empty(1 << 20, device=device), torch.empty(size << 20, device=device)
            dist.all_gather_single(whole, part)
            dist.reduce_scatter_single(part, whole)
            dist.all_to_all_single(whole, torch.empty_like(whole))
            dist.all_gather([torch.empty_like(part) for _ in range(size)], part)
            for work in dist.batch_isend_irecv([
                dist.P2POp(dist.isend, huge, (rank + 1) % size), dist.P2POp(dist.irecv, huge.clone(), (rank - 1) % size)
            ]):
                work.wait()
            objects = [None] * size
            dist.all_gather_object(objects, rank)
            assert objects == list(range(size))
        every_collective("meta")
        with FakeTensorMode():
            every_collective("cpu")
            every_collective("cuda")
        """,
        tmp_path,
        "-n",
        "4",
    )
    assert found["is_right"] is True
    assert found["made_up"] == []


def test_a_training_step_on_devices_that_are_not_there(tmp_path: Path) -> None:
    program = """
    import os, sys
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    torch.cuda.set_device(device)
    assert torch.cuda.current_device() == int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl", device_id=device)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.autocast("cuda", torch.bfloat16):
        assert torch.nn.Linear(8, 8, device="cuda")(torch.ones(8, device=torch.cuda.current_device())).dtype is torch.bfloat16
    torch.cuda.current_stream().wait_stream(side)

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1 << 14, 1 << 14).cuda(), device_ids=[device])
    loss = model(torch.ones(8, 1 << 14, device="cuda")).sum()
    loss.backward()
    dist.all_reduce(loss)
    assert loss.item() == 0.0

    layers = torch.nn.Sequential(*(torch.nn.Linear(1 << 14, 1 << 14, device=device) for _ in range(4)))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for layer in layers:
        fully_shard(layer, mesh=mesh, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    fully_shard(layers, mesh=mesh)
    optimizer = torch.optim.AdamW(layers.parameters())
    for _ in range(3):
        layers(torch.ones(8, 1 << 14, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    counts = torch.tensor([3], device=device)
    dist.broadcast(counts, 0)
    for _ in range(counts):  # of rank 0, which is known
        pass
    many = torch.ones(100)
    dist.all_reduce(many)
    assert many[1].item() == 4
    own = torch.tensor([3], device=device)
    dist.all_reduce(own)
    own.fill_(2)
    assert own.item() == 2
    try:
        torch.empty(1 << 22, device="cuda").nonzero()
    except Exception as error:
        assert "depends on elements, and its tensor has none in a rehearsal without memory" in str(error)
    else:
        sys.exit("not refused")
    """
    found = rehearsed(program, tmp_path, "-n", "4", "--as-installed", "--no-memory", "--cluster", "2x2")
    assert found["is_right"] is True
    lines = textwrap.dedent(program).splitlines()
    told = [int(line.rpartition(":")[2]) for line in found["made_up"]]
    assert [lines[number - 1] for number in told] == ["assert loss.item() == 0.0", "assert many[1].item() == 4"]


def test_bytes_of_a_step_are_those_of_the_formula(tmp_path: Path) -> None:
    found = rehearsed(
        """
        import torch
        import torch.distributed as dist
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        dist.init_process_group("gloo")
        layers = torch.nn.Sequential(*(torch.nn.Linear(1 << 13, 1 << 13) for _ in range(6)))
        for layer in layers:
            fully_shard(layer, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
        fully_shard(layers)
        for _ in range(3):
            layers(torch.ones(8, 1 << 13)).sum().backward()
        """,
        tmp_path,
        *("-n", "64", "--ranks", "0,63", "--cluster", "16x4", "--as-installed", "--no-memory"),
    )
    rows = {row["operation"]: row for row in found["costs"]["operations"]}
    parameters = 6 * ((1 << 26) + (1 << 13))
    sent = {  # every rank has all layers' parameters twice, in bfloat16, and gives the gradients in float32
        "all_gather": 2 * 2 * parameters,
        "reduce_scatter": 4 * parameters,
    }
    assert found["costs"]["steps"] == {"0": [18, 3], "63": [18, 3]}
    for operation, size in sent.items():
        row = rows[operation]
        assert abs(row["inside"] / (size * 3 / 4) - 1) < 0.01
        assert abs(row["across"] / (size * 15 / 16 / 4) - 1) < 0.01
