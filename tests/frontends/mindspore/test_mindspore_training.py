"""Data-parallel training: what ranks train on parts of a batch is what one process trains on the whole of it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import nn
from mindspore_world import MODES, in_mode
from mindspore_world import world as world_alone

import shim.frontends.mindspore.communication as communication
from shim.errors import ArgumentError, StateError, UnsupportedError
from shim.frontends.mindspore._training import boost_cells, model, parallel_mode, train_cells
from shim.frontends.mindspore.nn import DistributedGradReducer

ROWS, STEPS = 12, 3
OURS = {
    "mindspore.boost": [boost_cells.BoostTrainOneStepCell, boost_cells.BoostTrainOneStepWithLossScaleCell],
    "mindspore.nn": [DistributedGradReducer, train_cells.TrainOneStepCell, train_cells.TrainOneStepWithLossScaleCell],
    "mindspore": [model.Model],
}


@contextlib.contextmanager
def default_settings() -> Iterator[None]:
    try:
        yield
    finally:
        parallel_mode.reset_auto_parallel_context()


@contextlib.contextmanager
def world() -> Iterator[None]:
    """Be in the world, and leave the settings for parallel training as they are by default."""
    with world_alone(), default_settings():
        yield


@pytest.mark.parametrize("ours", [one for some in OURS.values() for one in some])
def test_signatures_are_mindspores(ours: Any) -> None:
    module = next(name for name, some in OURS.items() if ours in some)
    real = getattr(importlib.import_module(module), ours.__name__)
    names = ["__init__", *(name for name in ("train", "fit") if hasattr(real, name))]
    for name in names:
        assert signature_of(getattr(ours, name)) == signature_of(getattr(real, name)), name


def test_signatures_of_functions_are_mindspores() -> None:
    assert signature_of(model.build_train_network) == signature_of(mindspore.amp.build_train_network)
    for name in ("get_auto_parallel_context", "reset_auto_parallel_context", "set_auto_parallel_context"):
        assert signature_of(getattr(parallel_mode, name)) == signature_of(getattr(mindspore, name))


def signature_of(function: Any) -> list[tuple[str, Any, Any]]:
    """Return names, kinds and defaults of the parameters; MindSpore's default group is the name that ours has, too."""
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def network() -> Any:
    """Return a network with the same weights on every rank."""
    weights = [mindspore.Tensor(np.linspace(-1, 1, 4 * size).reshape(-1, size).astype("float32")) for size in (3, 4)]
    return nn.SequentialCell(nn.Dense(3, 4, weights[0], "zeros"), nn.Tanh(), nn.Dense(4, 1, weights[1][:1], "zeros"))


def batch() -> tuple[Any, Any]:
    inputs = (np.arange(3 * ROWS).reshape(ROWS, 3) / (3 * ROWS)).astype("float32")
    return inputs, (inputs**2).sum(axis=1, keepdims=True)


def trained(cell: Any, rank: int = 0, world_size: int = 1) -> list[Any]:
    """Return the weights after *cell*, a class, has taken some steps on a rank's part of the batch."""
    learner = network()
    optimizer = nn.Momentum(learner.trainable_params(), 0.1, 0.9)
    step = cell(nn.WithLossCell(learner, nn.MSELoss()), optimizer).set_train()
    parts = [mindspore.Tensor(one[rank::world_size]) for one in batch()]
    for _ in range(STEPS):
        step(*parts)
    return [parameter.asnumpy() for parameter in learner.trainable_params()]


class Written(nn.Cell):
    """A step as a program writes it."""

    def __init__(self, learner: Any, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.learner, self.optimizer = learner, optimizer
        self.grad = mindspore.ops.GradOperation(get_by_list=True)
        self.reducer = DistributedGradReducer(optimizer.parameters, mean=True)

    def construct(self, *inputs: Any) -> Any:
        return self.optimizer(self.reducer(self.grad(self.learner, self.optimizer.parameters)(*inputs)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cell", [Written, train_cells.TrainOneStepCell, model.build_train_network])
def test_training_is_that_of_one_process(cell: Any, mode: str, rank: int, world_size: int, tmp_path: Path) -> None:
    with world():
        alone = trained(nn.TrainOneStepCell)
        parallel_mode.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        with in_mode(mode, tmp_path):
            together = trained(cell, rank, world_size)
        for one, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-7)


def data(rank: int, world_size: int) -> Any:
    inputs, targets = batch()
    columns = {"inputs": inputs[rank::world_size], "targets": targets[rank::world_size]}
    return mindspore.dataset.NumpySlicesDataset(columns, shuffle=False).batch(ROWS // world_size)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["train", "fit"])
def test_a_model_trains_as_one_process(method: str, mode: str, rank: int, world_size: int, tmp_path: Path) -> None:
    with world():
        alone = trained(nn.TrainOneStepCell)
        parallel_mode.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        learner = network()
        optimizer = nn.Momentum(learner.trainable_params(), 0.1, 0.9)
        made = model.Model(learner, nn.MSELoss(), optimizer, metrics={"loss"})
        with in_mode(mode, tmp_path):
            given = {"valid_dataset": data(rank, world_size)} if method == "fit" else {}
            getattr(made, method)(STEPS, data(rank, world_size), **given)
        for parameter, expected in zip(learner.trainable_params(), alone, strict=True):
            np.testing.assert_allclose(parameter.asnumpy(), expected, rtol=1e-5, atol=1e-7)


def parameter(dtype: Any = "float32", **options: Any) -> Any:
    return mindspore.Parameter(mindspore.Tensor(np.zeros(2, dtype)), **options)


@pytest.mark.ranks(3)
@pytest.mark.parametrize(
    ("arguments", "divisor"), [({}, 1), ({"mean": True}, 3), ({"mean": True, "degree": 2}, 2), ({"degree": 2}, 1)]
)
def test_gradients_are_added_up_and_divided(arguments: Any, divisor: int, rank: int, world_size: int) -> None:
    with world():
        parameters = [parameter("float16"), parameter(layerwise_parallel=True), parameter()]
        reduce = DistributedGradReducer(parameters, **arguments)
        values = [np.array([1, 2], dtype) * (rank + 1) for dtype in ("float16", "float32", "float32")]
        half, own, single = reduce(tuple(map(mindspore.Tensor, values)))
        np.testing.assert_array_equal(half.asnumpy(), np.array([6, 12], "float16") / divisor)
        np.testing.assert_array_equal(own.asnumpy(), values[1])
        np.testing.assert_allclose(single.asnumpy(), np.array([6, 12]) / divisor, rtol=1e-6)
        assert [one.dtype for one in (half, single)] == [mindspore.float16, mindspore.float32]
        one = DistributedGradReducer(parameters[2:], **arguments)(mindspore.Tensor(values[2]))
        np.testing.assert_allclose(one.asnumpy(), np.array([6, 12]) / divisor, rtol=1e-6)


@pytest.mark.ranks(3)
def test_a_group_reduces_by_itself(rank: int, world_size: int) -> None:
    with world():
        communication.create_group("two", [0, 2])
        if rank != 1:
            reduce = DistributedGradReducer([parameter()], mean=True, group="two")
            np.testing.assert_array_equal(reduce((mindspore.Tensor([2.0 * rank]),))[0].asnumpy(), [2])


@pytest.mark.ranks(2)
def test_the_settings_mean_what_they_mean_to_mindspore(rank: int, world_size: int) -> None:
    with world():
        parallel_mode.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=4)
        assert parallel_mode.get_auto_parallel_context("parallel_mode") == "data_parallel"
        assert parallel_mode.get_auto_parallel_context("gradients_mean") is True
        assert mindspore.get_auto_parallel_context("parallel_mode") == "stand_alone"
        step = train_cells.TrainOneStepCell(network(), nn.SGD(network().trainable_params()))
        assert (step.degree, step.reducer_flag) == (4, True)
        parallel_mode.set_auto_parallel_context(gradients_mean=False)  # leaves the mode
        assert parallel_mode.get_auto_parallel_context("parallel_mode") == "data_parallel"
        parallel_mode.reset_auto_parallel_context()
        assert parallel_mode.get_auto_parallel_context("parallel_mode") == "stand_alone"
        step = train_cells.TrainOneStepCell(network(), nn.SGD(network().trainable_params()))
        assert not step.reducer_flag
        assert isinstance(step.grad_reducer, nn.Identity)


def deciding(callback: Any) -> Any:
    learner = network()
    optimizer = nn.SGD(learner.trainable_params())
    return model.Model(learner, nn.MSELoss(), optimizer).train(1, data(0, 1), callbacks=callback)


def with_optimizer(module: str) -> Any:
    kind = type(f"SGDOf{module.rpartition('.')[2].title()}", (nn.SGD,), {"__module__": module})
    return train_cells.TrainOneStepCell(network(), kind(network().trainable_params()))


def learner_and_optimizer() -> tuple[Any, Any]:
    learner = network()
    return learner, nn.SGD(learner.trainable_params())


SCALE = nn.DynamicLossScaleUpdateCell(8, 2, 2)
ALONE = {
    "EarlyStopping": lambda: deciding([mindspore.EarlyStopping()]),
    "ReduceLROnPlateau": lambda: deciding(mindspore.ReduceLROnPlateau()),
    "optimizer must not": lambda: with_optimizer("mindspore.nn.optim.thor"),
    "and SGDOfAdasum does": lambda: with_optimizer("mindspore.nn.optim.adasum"),
    "TrainOneStepWithLossScale": lambda: train_cells.TrainOneStepWithLossScaleCell(*learner_and_optimizer(), SCALE),
    "boost.BoostTrainOneStepCell": lambda: boost_cells.BoostTrainOneStepCell(*learner_and_optimizer()),
    "BoostTrainOneStepWithLossScaleCell": lambda: boost_cells.BoostTrainOneStepWithLossScaleCell(
        *learner_and_optimizer(), SCALE
    ),
    "builds a BoostTrainOneStepCell": lambda: model.build_train_network(
        *learner_and_optimizer(), nn.MSELoss(), boost_level="O1"
    ),
    "boost_level must be": lambda: model.Model(*learner_and_optimizer(), boost_level="O1"),
    "fusion_type must be 1, got 6": lambda: DistributedGradReducer([parameter()], fusion_type=6),
}


@pytest.mark.ranks(1)
@pytest.mark.parametrize("told", ALONE)
def test_what_would_leave_each_rank_to_itself_is_refused(told: str) -> None:
    with world():
        parallel_mode.set_auto_parallel_context(parallel_mode="data_parallel")
        with pytest.raises(UnsupportedError, match=told):
            ALONE[told]()


@pytest.mark.parametrize("mode", ["hybrid_parallel", "semi_auto_parallel", "auto_parallel"])
@default_settings()
def test_modes_of_mindspores_compiler_are_refused(mode: str) -> None:
    with pytest.raises(UnsupportedError, match=f"'{mode}', which uses mindspore's own process groups"):
        parallel_mode.set_auto_parallel_context(parallel_mode=mode, gradients_mean=True)
    assert parallel_mode.get_auto_parallel_context("gradients_mean") is False


@default_settings()
def test_parameters_are_not_broadcast_by_mindspores_compiler() -> None:
    for settings in ({"parallel_mode": "data_parallel", "parameter_broadcast": True}, {"parameter_broadcast": True}):
        with pytest.raises(UnsupportedError, match="parameter_broadcast must be False"):
            parallel_mode.set_auto_parallel_context(**settings)
        assert parallel_mode.get_auto_parallel_context("parameter_broadcast") is False
        parallel_mode.set_auto_parallel_context(parallel_mode="data_parallel")
    parallel_mode.set_auto_parallel_context(parallel_mode="stand_alone", parameter_broadcast=True)
    with pytest.raises(UnsupportedError, match="parameter_broadcast must be False"):
        parallel_mode.set_auto_parallel_context(parallel_mode="data_parallel")
    assert parallel_mode.get_auto_parallel_context("parallel_mode") == "stand_alone"


@default_settings()
def test_mistakes() -> None:
    with pytest.raises(ValueError, match="parallel_mode"):
        parallel_mode.set_auto_parallel_context(parallel_mode="data")
    assert parallel_mode.get_auto_parallel_context("parallel_mode") == "stand_alone"
    with pytest.raises(ArgumentError, match="degree must be an int above 0, got 0"):
        DistributedGradReducer([parameter()], degree=0)
    with pytest.raises(StateError, match="DistributedGradReducer"):
        DistributedGradReducer([parameter()])
    parallel_mode.set_auto_parallel_context(parallel_mode="data_parallel")
    with pytest.raises(StateError, match="TrainOneStepCell"):
        train_cells.TrainOneStepCell(*learner_and_optimizer())
