"""fleet's data parallelism: it trains as one process does, and refuses what is beyond it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from paddle_world import world

from shim.errors import ArgumentError, StateError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:No ccache found:UserWarning")  # of paddle, when it is imported


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
        if name != "fleet":
            ours, real = (inspect.signature(getattr(one, name)) for one in (fleet, paddles))
            assert [(one.name, one.kind, one.default) for one in ours.parameters.values()] == [
                (one.name, one.kind, one.default) for one in real.parameters.values()
            ], name


@pytest.mark.ranks(2, 3)
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

    fleet.init(is_collective=True)
    try:
        assert (fleet.worker_num(), fleet.worker_index()) == (3, rank)
        assert (fleet.is_first_worker(), fleet.is_worker(), fleet.is_server()) == (rank == 0, True, False)
        fleet.barrier_worker()
    finally:
        destroy_process_group()


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
