"""What ``paddle.distributed.fleet`` does for data parallelism, the same in every version of paddle. paddle is imported when a program begins."""

from __future__ import annotations

import copy
import importlib
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError, UnsupportedError
from shim.frontends._paddle.errors import GroupMissingError, paddle_function
from shim.frontends._paddle.training.layers import layer_class
from shim.frontends._paddle.world.options import enter, size_of

__all__ = ["Fleet", "fleet"]

_INIT = paddle_function("fleet.init")
_MODEL = paddle_function("fleet.distributed_model", errors={StateError: GroupMissingError})
_OPTIMIZER = paddle_function("fleet.distributed_optimizer", errors={StateError: GroupMissingError})

# What of a strategy is honoured; hybrid_configs are looked at by themselves.
_HONOURED = ("find_unused_parameters", "fuse_grad_size_in_MB", "hybrid_configs", "last_comm_group_size_MB")
_INSTEAD = (
    "Only data parallelism is there: write the rest with the collectives, or run the program without substitution."
)


class Fleet:
    """The data parallelism that a process has begun, with the strategy that it has given."""

    def __init__(self) -> None:
        self._strategy: Any = None

    def init(
        self, role_maker: Any = None, is_collective: Any = False, strategy: Any = None, log_level: int | str = "INFO"
    ) -> Fleet:
        """Make this process a rank of the world, and keep *strategy*."""
        if role_maker is not None:
            raise _INIT.explain(
                UnsupportedError("role_maker must be None, which asks the world who this is\n" + _INSTEAD)
            )
        if not isinstance(is_collective, bool):
            raise _INIT.explain(ArgumentError(f"is_collective must be a bool, got {is_collective!r}"))
        if not is_collective:
            raise _INIT.explain(UnsupportedError("is_collective must be True: there are no parameter servers"))
        if not importlib.import_module("paddle").in_dynamic_mode():
            raise _INIT.explain(UnsupportedError("the program must be in dynamic mode\n" + _INSTEAD))
        paddles = importlib.import_module("paddle.distributed.fleet")
        paddles.set_log_level(log_level)
        chosen = paddles.DistributedStrategy() if strategy is None else copy.deepcopy(strategy)
        _check(_INIT, chosen, size_of(_INIT, None))
        enter(_INIT)
        self._strategy = chosen
        return self

    def distributed_model(self, model: Any) -> Any:
        """Return *model* in a DataParallel with the strategy's buffers."""
        strategy = self._begun(_MODEL)
        pipelines = importlib.import_module("paddle.distributed.fleet.meta_parallel")
        if isinstance(model, pipelines.PipelineLayer):
            raise _MODEL.explain(UnsupportedError("model must be no PipelineLayer\n" + _INSTEAD))
        return layer_class(__name__, "DataParallel")(
            model,
            comm_buffer_size=strategy.fuse_grad_size_in_MB,
            last_comm_buffer_size=strategy.last_comm_group_size_MB,
            find_unused_parameters=strategy.find_unused_parameters,
        )

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """Return *optimizer*, as gradients are averaged when it takes its step, and keep *strategy* in place of the one before."""
        self._begun(_OPTIMIZER)
        if strategy is not None:
            _check(_OPTIMIZER, strategy, size_of(_OPTIMIZER, None))
            self._strategy = copy.deepcopy(strategy)
        return optimizer

    def _begun(self, caller: Caller) -> Any:
        if self._strategy is None:
            raise caller.explain(StateError("needs fleet.init(is_collective=True) before it"))
        return self._strategy


fleet = Fleet()


def _check(caller: Caller, strategy: Any, world_size: int) -> None:
    """Refuse what *strategy* asks for beyond data parallelism over a world of *world_size* ranks."""
    usual = type(strategy)()
    for field in strategy.strategy.DESCRIPTOR.fields:
        if field.name not in _HONOURED:
            _refuse_unusual(
                caller, field.name, getattr(strategy.strategy, field.name), getattr(usual.strategy, field.name)
            )
    for name, value in strategy.hybrid_configs.items():
        if name != "dp_degree":
            _refuse_unusual(caller, f"hybrid_configs[{name!r}]", value, usual.hybrid_configs[name])
        elif value not in (-1, world_size):
            raise caller.explain(
                ArgumentError(f"strategy.hybrid_configs['dp_degree'] must be -1 or {world_size}, got {value}")
            )


def _refuse_unusual(caller: Caller, name: str, value: Any, usual: Any) -> None:
    wanted, given = (
        str(one).strip() or "empty" for one in (usual, value)
    )  # some are messages, equal by their texts alone
    if given != wanted:
        raise caller.explain(UnsupportedError(f"strategy.{name} must be {wanted}, got {given}\n{_INSTEAD}"))
