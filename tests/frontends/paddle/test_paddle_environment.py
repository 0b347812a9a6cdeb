"""What a process is told about itself: ParallelEnv, options in the environment, and gloo's barrier apart from the world."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paddle_world import VERSIONS, world
from wrong_calls import assert_refused

from shim.errors import PeerLostError, ShimError, StateError, UnsupportedError

LAUNCHED = ("PADDLE_", "SHIM_", "FLAGS_", "RANK", "WORLD_SIZE", "TORCHELASTIC_", "MS_", "OMPI_", "SLURM_", "PMI_")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the variables of a launcher, in an environment without any other's."""

    def set_variables(variables: dict[str, str]) -> None:
        for name in [name for name in os.environ if name.startswith(LAUNCHED)]:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    set_variables({})
    return set_variables


ENDPOINTS = "127.0.0.1:6170,127.0.0.1:6171,127.0.0.1:6172"
LAUNCHERS = {
    "paddle": {
        "PADDLE_TRAINER_ID": "2",
        "PADDLE_TRAINERS_NUM": "3",
        "PADDLE_TRAINER_ENDPOINTS": ENDPOINTS,
        "PADDLE_CURRENT_ENDPOINT": "127.0.0.1:6172",
    },
    "torchrun": {"TORCHELASTIC_RUN_ID": "none", "RANK": "2", "WORLD_SIZE": "3", "MASTER_PORT": "29500"},
    "msrun": {"MS_ROLE": "MS_WORKER", "RANK_ID": "2", "MS_WORKER_NUM": "3", "MS_SCHED_PORT": "8118"},
    "Open MPI": {
        "OMPI_COMM_WORLD_RANK": "2",
        "OMPI_COMM_WORLD_SIZE": "3",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "3",
        "PMIX_NAMESPACE": "job",
    },
    "shim run": {"SHIM_RANK": "2", "SHIM_WORLD_SIZE": "3", "SHIM_JOB": "job"},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_launcher_tells_rank_and_size(launched: Any, version: str, launcher: str) -> None:
    launched(LAUNCHERS[launcher])
    env = VERSIONS[version].ParallelEnv()
    assert (env.rank, env.local_rank, env.world_size, env.nranks) == (2, 2, 3, 3)
    if launcher == "paddle":
        assert env.trainer_endpoints == ENDPOINTS.split(",")
        assert env.current_endpoint == "127.0.0.1:6172"
    else:
        assert (env.trainer_endpoints, env.current_endpoint) == ([""], "")


def test_a_process_alone(launched: Any) -> None:
    launched({})
    env = VERSIONS["3"].ParallelEnv()
    assert (env.rank, env.world_size, env.device_id, env.dev_id, env.device_type) == (0, 1, 0, 0, "")
    assert (env.nrings, env.pg_timeout) == (1, 1_800_000)


def test_what_else_the_environment_tells(launched: Any, tmp_path: Path) -> None:
    backup = tmp_path / "backup.json"
    backup.write_text(json.dumps({"PADDLE_TRAINER_ENDPOINTS": ENDPOINTS}))
    launched(
        {
            "PADDLE_TRAINER_ID": "1",
            "PADDLE_TRAINERS_NUM": "3",
            "PADDLE_BACKUP_ENV_PATH": str(backup),
            "FLAGS_selected_gpus": "6,7",
            "FLAGS_nccl_nrings": "8",
            "PADDLE_PG_TIMEOUT": "5000",
        }
    )
    env = VERSIONS["3"].ParallelEnv()
    assert (env.device_id, env.dev_id, env.nrings, env.pg_timeout) == (6, 6, 8, 5000)
    assert env.trainer_endpoints == ENDPOINTS.split(",")
    launched({"FLAGS_selected_xpus": "4"})
    assert (env.device_id, env.nrings) == (6, 8)
    assert VERSIONS["3"].ParallelEnv().device_id == 4


@pytest.mark.parametrize(
    ("kind", "variables"),
    [
        (AssertionError, {"FLAGS_nccl_nrings": "0"}),
        (AssertionError, {"FLAGS_nccl_nrings": "9"}),
        (ValueError, {"FLAGS_nccl_nrings": "many"}),
        (ValueError, {"FLAGS_selected_gpus": "first"}),
        (ValueError, {"PADDLE_PG_TIMEOUT": "long"}),
        (ValueError, {"PADDLE_TRAINER_ID": "x", "PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ENDPOINTS": ENDPOINTS}),
    ],
)
def test_variables_that_make_no_sense(launched: Any, kind: type[Exception], variables: dict[str, str]) -> None:
    launched(variables)
    with pytest.raises(kind, match=next(iter(variables))) as caught:
        VERSIONS["3"].ParallelEnv()
    assert isinstance(caught.value, ShimError)


@pytest.mark.ranks(2)
def test_in_a_world(rank: int) -> None:
    with world() as dist:
        env = dist.ParallelEnv()
        assert (env.rank, env.world_size) == (rank, 2)


@pytest.mark.ranks(1)
def test_the_worlds_timeout_is_in_the_environment() -> None:
    dist = VERSIONS["3"]
    try:
        os.environ["PADDLE_PG_TIMEOUT"] = "2500"
        assert dist.init_parallel_env()._core.timeout == 2.5
        dist.destroy_process_group()
        os.environ["PADDLE_PG_TIMEOUT"] = "0"
        with pytest.raises(ValueError, match="PADDLE_PG_TIMEOUT"):
            dist.init_parallel_env()
    finally:
        del os.environ["PADDLE_PG_TIMEOUT"]
    with world():
        assert dist.get_group()._core.timeout == 1800.0


@pytest.mark.ranks(1)
@pytest.mark.parametrize(("device", "backend"), [("cpu", "GLOO"), ("gpu:0", "NCCL"), ("xpu:0", "GLOO")])
def test_the_backend_is_that_of_paddles_device(device: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddle.get_device", lambda: device)
    with world():
        assert VERSIONS["3"].get_backend() == backend


@pytest.mark.ranks(1)
def test_a_config_for_nccl() -> None:
    dist = VERSIONS["3"]
    assert dist.create_nccl_config() is None
    assert dist.create_nccl_config({"commName": "x"}) is None
    with world():
        assert dist.create_nccl_config({"commName": "x"}) is None
        assert dist.new_group(nccl_config=dist.create_nccl_config({"nchannels": 4})).is_member()
    os.environ["PADDLE_DISTRI_BACKEND"] = "nccl"
    try:
        with world():
            assert dist.create_nccl_config() is None
            with pytest.raises(UnsupportedError, match="nccl_config"):
                dist.create_nccl_config({"commName": "x"})
    finally:
        del os.environ["PADDLE_DISTRI_BACKEND"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "call"),
    [("launch", lambda dist: dist.launch()), ("split", lambda dist: dist.split(None, (2, 3), "linear", axis=1))],
)
def test_other_parts_of_paddle_are_named(version: str, name: str, call: Any) -> None:
    with pytest.raises(
        UnsupportedError, match=rf"^paddle\.distributed\.{name}: is .*, which the paddle frontend does not have"
    ):
        call(VERSIONS[version])


def free_endpoint() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listening.getsockname()[1]}"


PROGRAM = """
import sys, time
import shim.frontends.paddle_{version}.distributed as dist
rank, size, endpoint = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.gloo_init_parallel_env(rank, size, endpoint)
assert not dist.is_initialized()
for turn in range(3):
    print("before", turn, time.monotonic_ns(), flush=True)
    dist.gloo_barrier()
    print("after", turn, time.monotonic_ns(), flush=True)
dist.gloo_release()
dist.gloo_release()
dist.gloo_init_parallel_env(size - 1 - rank, size, endpoint)
dist.gloo_barrier()
"""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [2, 3])
def test_processes_without_a_launcher_meet(launched: Any, version: str, count: int) -> None:
    endpoint = free_endpoint()
    program = PROGRAM.format(version=version)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank), str(count), endpoint],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    printed = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * count, printed
    for turn in range(3):
        arrived = [int(re.findall(rf"before {turn} (\d+)", text)[0]) for text in printed]
        left = [int(re.findall(rf"after {turn} (\d+)", text)[0]) for text in printed]
        assert max(arrived) < min(left)


@pytest.mark.ranks(3)
def test_a_meeting_beside_the_world(rank: int, world_size: int) -> None:
    with world() as dist:
        endpoints = [free_endpoint()]
        dist.broadcast_object_list(endpoints, 0)
        if rank != 1:
            dist.gloo_init_parallel_env(rank // 2, 2, endpoints[0])
            dist.gloo_barrier()
            if rank == 2:  # which sees that the other one has left
                with pytest.raises(PeerLostError):
                    dist.gloo_barrier()
            dist.gloo_release()
            with pytest.raises(AssertionError, match="gloo_init_parallel_env"):
                dist.gloo_barrier()
        dist.barrier()
        assert dist.get_world_size() == 3


@pytest.mark.parametrize(
    ("kind", "words", "arguments"),
    [
        (AssertionError, "rank_num must be at least 2, got 1", (0, 1, "127.0.0.1:6170")),
        (ValueError, "rank_id must be in 0..1, got 2", (2, 2, "127.0.0.1:6170")),
        (TypeError, "integers", ("0", 2, "127.0.0.1:6170")),
        (ValueError, "server_endpoint", (0, 2, "127.0.0.1")),
        (ValueError, "server_endpoint", (0, 2, "127.0.0.1:port")),
        (ValueError, "server_endpoint", (0, 2, 6170)),
        (StateError, "192.0.2.1", (0, 2, "192.0.2.1:6170")),
    ],
)
def test_wrong_meetings(kind: type[Exception], words: str, arguments: Any) -> None:
    dist = VERSIONS["2"]
    assert_refused(kind, words, dist.gloo_init_parallel_env, *arguments)
    with pytest.raises(AssertionError):
        dist.gloo_barrier()
    assert dist.gloo_release() is None
