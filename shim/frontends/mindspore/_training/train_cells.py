"""The cells of ``mindspore.nn`` that take a step of training, which reduce gradients in the data-parallel mode. Import this only where MindSpore is loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller
from shim.errors import UnsupportedError
from shim.frontends.mindspore._training.grad_reducer import DistributedGradReducer
from shim.frontends.mindspore._training.parallel_mode import (
    DATA_PARALLEL,
    degree,
    get_auto_parallel_context,
    is_data_parallel,
    refuse_in_data_parallel,
)

__all__ = ["TrainOneStepCell", "TrainOneStepWithLossScaleCell", "reduce_gradients"]

_STEP = Caller("mindspore.nn.TrainOneStepCell")
_SCALED = Caller("mindspore.nn.TrainOneStepWithLossScaleCell")

_nn: Any = sys.modules["mindspore"].nn
if TYPE_CHECKING:

    class _Step:
        """What mypy, which does not see MindSpore, is to know of it."""

        def __init__(self, *arguments: Any) -> None: ...

    _ScaledStep = _Step
else:
    _Step = _nn.TrainOneStepCell
    _ScaledStep = _nn.TrainOneStepWithLossScaleCell

# Optimizers that communicate by themselves in this mode.
_COMMUNICATING = ("mindspore.nn.optim.thor", "mindspore.nn.optim.adasum")


class TrainOneStepCell(_Step):
    """MindSpore's own, a step in which *optimizer* trains *network*, with gradients of *sens* times the loss, and returned with *return_grad*.

    In the data-parallel mode the ranks of the world reduce the gradients before the step.
    Raises: RuntimeError before initialisation in that mode; UnsupportedError for an *optimizer* that communicates by itself in it.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/nn/mindspore.nn.TrainOneStepCell.html
    """

    def __init__(self, network: Any, optimizer: Any, sens: Any = None, return_grad: bool = False) -> None:
        super().__init__(network, optimizer, sens, return_grad)
        if is_data_parallel():
            reduce_gradients(_STEP, self)


class TrainOneStepWithLossScaleCell(_ScaledStep):
    """MindSpore's own, a step in which *optimizer* trains *network*, whose loss is scaled by *scale_sense*.

    Raises: UnsupportedError in the data-parallel mode.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/nn/mindspore.nn.TrainOneStepWithLossScaleCell.html
    """

    def __init__(self, network: Any, optimizer: Any, scale_sense: Any) -> None:
        refuse_in_data_parallel(_SCALED, "Use mindspore.nn.TrainOneStepCell, whose sens is a fixed scale.")
        super().__init__(network, optimizer, scale_sense)


def reduce_gradients(caller: Caller, cell: Any) -> None:
    """Have *cell*, a TrainOneStepCell that MindSpore has made for one process, reduce its gradients over the world."""
    if type(cell.optimizer).__module__ in _COMMUNICATING:
        name = type(cell.optimizer).__name__
        raise caller.explain(
            UnsupportedError(
                f"optimizer must not communicate by itself in the data-parallel mode, and {name} does\nUse another optimizer."
            )
        )
    cell.parallel_mode = DATA_PARALLEL
    cell.reducer_flag = True
    cell.mean = get_auto_parallel_context("gradients_mean")
    cell.degree = degree(caller)
    cell.grad_reducer = DistributedGradReducer(cell.weights, cell.mean, cell.degree)
