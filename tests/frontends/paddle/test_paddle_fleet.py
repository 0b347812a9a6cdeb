"""fleet's data parallelism: it trains as one process does, and refuses what is beyond it."""

from __future__ import annotations

import inspect
import os
from typing import Any

import pytest
from paddle_world import world

from shim.errors import ArgumentError, StateError, UnsupportedError


def strategy(**options: Any) -> Any:
    import paddle.distributed.fleet

    made = paddle.distributed.fleet.DistributedStrategy()
    for name, value in options.items():
        setattr(made, name, value)
    return made


@pytest.fixture(autouse=True)
def _begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.frontends.paddle_3.distributed import fleet

    monkeypatch.setattr(fleet.fleet, "_strategy", None)


def test_signatures_are_paddles() -> None:
    import paddle.distributed.fleet as paddles

    from shim.frontends.paddle_3.distributed import fleet

    for name in fleet.__all__:
        if name not in ("fleet", "util", "UtilBase"):
            ours, real = (inspect.signature(getattr(one, name)) for one in (fleet, paddles))
            assert [(one.name, one.kind, one.default) for one in ours.parameters.values()] == [
                (one.name, one.kind, one.default) for one in real.parameters.values()
            ], name


@pytest.mark.ranks(3)
@pytest.mark.parametrize("network", ["Plain", "Unused"])
def test_training_is_that_of_one_process(network: str, rank: int, world_size: int) -> None:
    from data_parallel_networks import assert_same_state, batch, made, paddle, part, trained

    with world() as dist:
        inputs, targets = batch()
        alone = made(network, 0)
        trained(alone, paddle.to_tensor(inputs), paddle.to_tensor(targets))
        options = strategy(hybrid_configs={"dp_degree": world_size}, find_unused_parameters=True)
        assert dist.fleet.init(is_collective=True, strategy=options, log_level="WARNING") is dist.fleet.fleet
        model = dist.fleet.distributed_model(made(network, rank))  # another beginning on each rank
        trained(model, part(inputs, rank, world_size), part(targets, rank, world_size))
        assert_same_state(model, alone)


@pytest.mark.ranks(2)
def test_the_strategy_says_how_large_buffers_are(rank: int, world_size: int) -> None:
    from data_parallel_networks import made

    with world() as dist:
        dist.fleet.fleet.init(is_collective=True)  # as programs do that import the object
        options = strategy(fuse_grad_size_in_MB=3, last_comm_group_size_MB=0.5, find_unused_parameters=True)
        optimizer = object()
        assert dist.fleet.distributed_optimizer(optimizer, strategy=options) is optimizer
        model = dist.fleet.distributed_model(made("Plain", 0))
        sizes = model.comm_buffer_size, model.last_comm_buffer_size, model.find_unused_parameters
        assert sizes == (3 * 2**20, 2**19, True)


@pytest.mark.ranks(3)
def test_ranks_are_the_worlds(rank: int, world_size: int) -> None:
    from shim.frontends.paddle_3.distributed import destroy_process_group, fleet

    assert (fleet.worker_num(), fleet.worker_index()) == (3, rank)  # of the launcher, before init
    fleet.init(is_collective=True)
    try:
        for answers in (fleet, fleet.fleet):
            assert (answers.worker_num(), answers.worker_index(), answers.server_index()) == (3, rank, rank)
            assert (answers.is_first_worker(), answers.is_worker()) == (rank == 0, True)
            assert (answers.is_server(), answers.is_coordinator(), answers.server_num()) == (False, False, 0)
            assert (answers.server_endpoints(), answers.server_endpoints(to_string=True)) == ([], "")
            answers.barrier_worker()
        assert (fleet.nranks(), fleet.world_size(), fleet.rank()) == (3, 3, rank)
        assert fleet.util.get_file_shard(["a", "b", "c", "d"]) == [["a", "b"], ["c"], ["d"]][rank]
        assert fleet.util.get_file_shard(["a"]) == [["a"], [], []][rank]
        fleet.util.barrier()
    finally:
        destroy_process_group()


VARIABLES = {"PADDLE_TRAINER_ID": "2", "PADDLE_TRAINERS_NUM": "4"}
ENDPOINTS = {**VARIABLES, "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:1,10.0.0.1:2,10.0.0.2:1,10.0.0.2:2"}
OF_TORCHRUN = {
    "RANK": "2",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "1",
    "TORCHELASTIC_RUN_ID": "job",
    "GROUP_WORLD_SIZE": "2",
}
QUESTIONS = ("local_rank", "rank_in_node", "node_num", "local_device_ids", "world_device_ids", "rank", "nranks")
ANSWERS = {
    "nobody": ({}, (None, None, 1, None, None, 0, 1)),
    "paddle": ({**ENDPOINTS, "PADDLE_RANK_IN_NODE": "0"}, ("0", "0", 2, None, None, 2, 4)),
    "devices": (
        {**ENDPOINTS, "PADDLE_LOCAL_DEVICE_IDS": "0,1", "PADDLE_WORLD_DEVICE_IDS": "0,1:0,1"},
        (None, None, 2, "0,1", "0,1:0,1", 2, 4),
    ),
    "torchrun": (OF_TORCHRUN, ("0", "0", 2, None, None, 2, 4)),
}


@pytest.mark.parametrize("launcher", ANSWERS)
def test_the_launcher_answers(launcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.frontends.paddle_3.distributed import fleet

    variables, answers = ANSWERS[launcher]
    for name in [name for name in os.environ if name.startswith(("PADDLE_", "SHIM_", "RANK", "LOCAL", "MASTER"))]:
        monkeypatch.delenv(name)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert tuple(getattr(fleet, name)() for name in QUESTIONS) == answers


@pytest.mark.parametrize("launcher", ["nobody", "paddle", "torchrun"])
def test_endpoints_are_the_launchers(launcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.frontends.paddle_3.distributed import fleet

    for name in [name for name in os.environ if name.startswith(("PADDLE_", "SHIM_"))]:
        monkeypatch.delenv(name)
    for name, text in ANSWERS[launcher][0].items():
        monkeypatch.setenv(name, text)
    if launcher == "torchrun":
        with pytest.raises(UnsupportedError, match=r"fleet\.worker_endpoints: needs PADDLE_TRAINER_ENDPOINTS"):
            fleet.worker_endpoints()
        return
    text = ENDPOINTS["PADDLE_TRAINER_ENDPOINTS"] if launcher == "paddle" else "127.0.0.1:6170"
    assert (fleet.worker_endpoints(), fleet.worker_endpoints(to_string=True)) == (text.split(","), text)


def test_what_needs_no_ranks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from shim.frontends.paddle_3.distributed import fleet

    for name, text in ENDPOINTS.items():
        monkeypatch.setenv(name, text)
    assert isinstance(fleet.util, fleet.UtilBase)
    assert isinstance(fleet.fleet, fleet.Fleet)
    fleet.util.print_on_rank("mine", 2)
    fleet.util.print_on_rank("another's", 1)
    assert capsys.readouterr().out == "mine\n"
    assert fleet.util.get_heter_file_shard(list("abcdef")) == ["e"]
    with pytest.raises(TypeError, match="files must be a list, got 'abc'"):
        fleet.util.get_file_shard("abc")
    for combine in (fleet.util.all_reduce, fleet.util.all_gather):
        with pytest.raises(
            UnsupportedError, match=r"in programs with parameter servers alone\nCall paddle\.distributed"
        ):
            combine(1)
    with pytest.raises(UnsupportedError, match="comm_world must be 'worker', got 'all'"):
        fleet.util.barrier("all")
    with pytest.raises(AttributeError, match="which is not a part of fleet's data parallelism"):
        _ = fleet.fleet.get_hybrid_communicate_group


BEYOND = {
    "strategy.amp must be False, got True": {"amp": True},
    "strategy.gradient_merge must be False, got True": {"gradient_merge": True},
    "strategy.heter_ccl_mode must be False, got True": {"heter_ccl_mode": True},
    "strategy.amp_configs must be": {"amp_configs": {"init_loss_scaling": 2.0}},
    r"strategy.hybrid_configs\['mp_degree'\] must be 1, got 2": {"hybrid_configs": {"mp_degree": 2}},
    r"strategy.hybrid_configs\['sharding_degree'\] must be 1, got 2": {"hybrid_configs": {"sharding_degree": 2}},
    r"strategy.hybrid_configs\['pp_configs'\] must be empty, got": {
        "hybrid_configs": {"pp_configs": {"dp_comm_overlap": True}}
    },
}


@pytest.mark.parametrize("told", BEYOND)
def test_a_strategy_beyond_data_parallelism_is_refused(told: str) -> None:
    from shim.frontends.paddle_3.distributed import fleet, is_initialized

    with pytest.raises(UnsupportedError, match=f"fleet.init: {told}"):
        fleet.init(is_collective=True, strategy=strategy(**BEYOND[told]))
    assert not is_initialized()


@pytest.mark.ranks(1)
def test_other_beginnings_are_refused() -> None:
    import paddle
    import paddle.distributed.fleet as paddles

    with world() as dist:
        fleet = dist.fleet
        with pytest.raises(UnsupportedError, match="is_collective must be True"):
            fleet.init()
        with pytest.raises(ValueError, match="is_collective must be a bool, got 1"):
            fleet.init(is_collective=1)
        with pytest.raises(UnsupportedError, match="role_maker must be None"):
            fleet.init(paddles.PaddleCloudRoleMaker(is_collective=True))
        with pytest.raises(ArgumentError, match=r"dp_degree'\] must be -1 or 1, got 2"):
            fleet.init(is_collective=True, strategy=strategy(hybrid_configs={"dp_degree": 2}))
        paddle.enable_static()
        try:
            with pytest.raises(UnsupportedError, match="must be in dynamic mode"):
                fleet.init(is_collective=True)
        finally:
            paddle.disable_static()
        for use in (fleet.distributed_model, fleet.distributed_optimizer):
            with pytest.raises(StateError, match=r"needs fleet.init\(is_collective=True\) before it"):
                use(None)
        fleet.init(is_collective=True)
        with pytest.raises(UnsupportedError, match="model must be no PipelineLayer"):
            fleet.distributed_model(object.__new__(paddles.meta_parallel.PipelineLayer))
        with pytest.raises(UnsupportedError, match=r"fleet\.distributed_optimizer: strategy\.amp"):
            fleet.distributed_optimizer(None, strategy(amp=True))
