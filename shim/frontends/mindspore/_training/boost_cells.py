"""The cells of ``mindspore.boost`` that take a step of training, refused in the data-parallel mode. Import this only where MindSpore is loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller
from shim.frontends.mindspore._training.parallel_mode import refuse_in_data_parallel

__all__ = ["BoostTrainOneStepCell", "BoostTrainOneStepWithLossScaleCell"]

_STEP = Caller("mindspore.boost.BoostTrainOneStepCell")
_SCALED = Caller("mindspore.boost.BoostTrainOneStepWithLossScaleCell")
_INSTEAD = "Use mindspore.nn.TrainOneStepCell."

if TYPE_CHECKING:

    class _Step:
        """What mypy, which does not see MindSpore, is to know of it."""

        def __init__(self, *arguments: Any) -> None: ...

    _ScaledStep = _Step
else:
    _boost: Any = sys.modules["mindspore.boost.boost_cell_wrapper"]
    _Step = _boost.BoostTrainOneStepCell
    _ScaledStep = _boost.BoostTrainOneStepWithLossScaleCell


class BoostTrainOneStepCell(_Step):
    """MindSpore's own, for *network*, *optimizer* and *sens*.

    Raises: UnsupportedError in the data-parallel mode.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mindspore.boost.html
    """

    def __init__(self, network: Any, optimizer: Any, sens: Any = None) -> None:
        refuse_in_data_parallel(_STEP, _INSTEAD)
        super().__init__(network, optimizer, sens)


class BoostTrainOneStepWithLossScaleCell(_ScaledStep):
    """MindSpore's own, for *network*, *optimizer* and *scale_sense*.

    Raises: UnsupportedError in the data-parallel mode.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mindspore.boost.html
    """

    def __init__(self, network: Any, optimizer: Any, scale_sense: Any) -> None:
        refuse_in_data_parallel(_SCALED, _INSTEAD)
        super().__init__(network, optimizer, scale_sense)
