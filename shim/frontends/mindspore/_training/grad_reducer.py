"""``mindspore.nn.DistributedGradReducer``. Import this only where MindSpore is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.reductions import AllReduce
from shim.frontends.mindspore._reduce_ops import ReduceOp

_ME = Caller("mindspore.nn.DistributedGradReducer")

_mindspore: Any = sys.modules["mindspore"]
_ops: Any = _mindspore.ops
_Tensor: Any = _mindspore.Tensor
_float32: Any = _mindspore.float32
if TYPE_CHECKING:

    class _Cell:
        """What mypy, which does not see MindSpore, is to know of it."""

        def __init__(self, auto_prefix: bool) -> None: ...

else:
    _Cell = _mindspore.nn.Cell


class DistributedGradReducer(_Cell):
    """Called with the gradients of *parameters*, returns their sums over the ranks of *group*, or with *mean* the sums divided by *degree*.

    The default of *mean* is the setting "gradients_mean", that of *degree* the number of ranks. Gradients are added up in float32 and keep
    their dtypes. Those of parameters with ``layerwise_parallel`` stay as they are.
    Raises: ValueError for a *degree* that is no int above 0; UnsupportedError for another *fusion_type* than 1.
    Deviates: gradients are sent one by one; sparse ones raise TypeError.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/nn/mindspore.nn.DistributedGradReducer.html
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        if fusion_type != 1:
            raise _ME.explain(
                UnsupportedError(
                    f"fusion_type must be 1, got {fusion_type!r}\nIt is for MindSpore's compiler, which does not send these gradients."
                )
            )
        if degree is None:
            degree = group_names.known_group(_ME, group).size
        elif not isinstance(degree, int) or degree <= 0:
            raise _ME.explain(ArgumentError(f"degree must be an int above 0, got {degree!r}"))
        self.mean = _mindspore.get_auto_parallel_context("gradients_mean") if mean is None else mean
        self.degree = _Tensor(1.0 / degree, _float32)
        self.allreduce_filter = tuple(not _is_split(parameter) for parameter in parameters)
        self.allreduce = AllReduce(ReduceOp.SUM, group)

    def construct(self, grads: Any) -> Any:
        """Return *grads*, a tensor or a tuple of one for each parameter, reduced. MindSpore's compiler reads this."""
        if isinstance(grads, _Tensor):
            return self.reduced(self.allreduce_filter[0], grads)
        new_grads: Any = ()
        for is_reduced, grad in zip(self.allreduce_filter, grads):  # noqa: B905  # the compiler knows no strict
            new_grads = new_grads + (self.reduced(is_reduced, grad),)  # noqa: RUF005  # nor this in a loop
        return new_grads

    def reduced(self, is_reduced: bool, grad: Any) -> Any:
        """Return *grad*, and what the other ranks have added to it if it *is_reduced*."""
        if not is_reduced:
            return grad
        total = self.allreduce(_ops.cast(grad, _float32))
        if self.mean:
            total = _ops.mul(total, self.degree)
        return _ops.cast(total, grad.dtype)


def _is_split(parameter: Any) -> bool:
    """Tell whether each rank has a part of *parameter* of its own."""
    return bool(parameter.layerwise_parallel or parameter.param_info.is_in_pynative_shard)
