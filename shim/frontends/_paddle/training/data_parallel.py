"""``paddle.DataParallel``, the same in every version of paddle. Import this only where paddle is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller, warn_user
from shim.errors import StateError, TensorError, UnsupportedError
from shim.frontends._paddle.errors import (
    ArgumentAssertionError,
    ArgumentTypeError,
    GroupMissingError,
    OutsiderError,
    PaddleTensorError,
)
from shim.frontends._paddle.groups.group_views import Group, group_of, member_of
from shim.frontends._paddle.training.gradients import Gradients
from shim.frontends._paddle.training.same_networks import start_from_rank_0
from shim.frontends._paddle.world.options import size_of

_ME = Caller("paddle.DataParallel", errors={StateError: GroupMissingError, TensorError: PaddleTensorError})
_MEBIBYTE = 1024 * 1024

_paddle: Any = sys.modules["paddle"]
if TYPE_CHECKING:

    class _Layer:
        """What mypy, which does not see paddle, is to know of it."""

        def __init__(self, name_scope: str) -> None: ...

else:
    _Layer = _paddle.nn.Layer


class DataParallel(_Layer):
    """The network *layers*, whose copies on the ranks of *group* (None: the world) stay equal while each learns from data of its own.

    It starts from the parameters and buffers of the world's rank 0. At the end of each backward the ranks average the gradients, in buffers
    of *comm_buffer_size* MiB and a last one of *last_comm_buffer_size*.
    Raises: AssertionError before initialisation, for a *group* that is none, and for nothing to train; TypeError for a buffer's size below 0;
    RuntimeError outside *group*, and on every rank for *layers* whose parameters and buffers are not everywhere as many, of the same shapes and
    dtypes, and the same ones to be trained. Where the averaging fails, the backward raises SystemError, which paddle makes of what a hook
    raises, with the error itself as its ``__cause__``.
    Deviates: parameters that a rank has not used count as 0 even without *find_unused_parameters*; paddle lets the ranks' copies diverge.
    Sparse gradients, and a *strategy* for another number of ranks than the world's, raise UnsupportedError. A wrong *group* or size raises on a single rank too,
    where paddle does not check it.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/DataParallel_en.html
    """

    def __init__(
        self,
        layers: Any,
        strategy: Any = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: float = 1,
        find_unused_parameters: bool = False,
        group: Group | None = None,
    ) -> None:
        super().__init__(layers.full_name() + "_data_parallel")
        if not _paddle.in_dynamic_mode():
            raise _ME.explain(ArgumentAssertionError("layers must be run as dynamic graph, not in static mode"))
        if getattr(strategy, "nranks", None) != (None if strategy is None else size_of(_ME, None)):
            raise _ME.explain(
                UnsupportedError(
                    f"strategy must be None, or a ParallelStrategy for the world's ranks, got {strategy!r}\nIt is of paddle 1."
                )
            )
        if group is not None and not isinstance(group, Group):
            raise _ME.explain(ArgumentAssertionError(f"{{group}} must be a Group or None, got {group!r}"))
        for name, size in (("comm_buffer_size", comm_buffer_size), ("last_comm_buffer_size", last_comm_buffer_size)):
            if size < 0:
                raise _ME.explain(ArgumentTypeError(f"{name} must be at least 0, got {size!r}"))
        self._layers = layers
        self.find_unused_parameters = find_unused_parameters
        self.grad_need_sync = True
        self.group = group
        self._gradients: Gradients | None = None
        self.comm_buffer_size = int(comm_buffer_size * _MEBIBYTE)
        self.last_comm_buffer_size = int(last_comm_buffer_size * _MEBIBYTE)
        if size_of(_ME, None) > 1:
            self.group = member_of(_ME, group)
            start_from_rank_0(_ME, group_of(_ME, None), layers)
            self.init_reducer()
        else:
            warn_user("paddle.DataParallel: this process is the only rank, so nothing is averaged")

    def init_reducer(self) -> None:
        """Have the gradients of the parameters that are to be trained averaged from now on."""
        for name, layer in self._layers.named_sublayers(include_self=True):
            if isinstance(layer, _paddle.nn.Embedding) and layer._sparse:
                raise _ME.explain(
                    UnsupportedError(f"layers must have no sparse gradients, and {name or 'it'} has them")
                )
        trained = [one for one in self._layers.parameters() if one.trainable and not getattr(one, "no_sync", False)]
        if not trained:
            raise _ME.explain(ArgumentAssertionError("layers must have a parameter to train"))
        group = group_of(_ME, self.group)
        if group.rank < 0:
            raise _ME.explain(OutsiderError("{group} must be one that the caller is a member of"), group)
        sizes = self.comm_buffer_size, self.last_comm_buffer_size
        self._gradients = Gradients(_ME, group, trained, *sizes)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return what the network makes of *inputs* and *kwargs*; a backward from there is followed by the averaging."""
        outputs = self._layers(*inputs, **kwargs)
        if self._gradients is not None and _paddle.is_grad_enabled():
            if self.grad_need_sync:
                self._gradients.expect(list(_tensors_in(outputs)))
            else:
                self._gradients.expect_nothing()
        return outputs

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients of what is computed in this context add up on each rank, until a backward from outside averages them."""
        before, self.grad_need_sync = self.grad_need_sync, False
        try:
            yield
        finally:
            self.grad_need_sync = before

    def scale_loss(self, loss: Any) -> Any:
        """Return *loss*; paddle has deprecated this."""
        warn_user("paddle.DataParallel.scale_loss: is deprecated, and does nothing")
        return loss

    def apply_collective_grads(self) -> None:
        """Do nothing; paddle has deprecated this."""
        warn_user("paddle.DataParallel.apply_collective_grads: is deprecated, and does nothing")

    def state_dict(
        self, destination: Any = None, include_sublayers: bool = True, structured_name_prefix: str = ""
    ) -> Mapping[str, Any]:
        """Return the network's parameters and buffers by name, put into *destination* where that is given."""
        found: Mapping[str, Any] = self._layers.state_dict(
            destination=destination,
            include_sublayers=include_sublayers,
            structured_name_prefix=structured_name_prefix,
        )
        return found

    def set_state_dict(self, state_dict: Mapping[str, Any], use_structured_name: bool = True) -> None:
        """Give the network the parameters and buffers in *state_dict*."""
        self._layers.set_state_dict(state_dict, use_structured_name=use_structured_name)

    set_dict = set_state_dict
    load_dict = set_state_dict


def _tensors_in(outputs: Any) -> Iterator[Any]:
    if isinstance(outputs, _paddle.Tensor):
        yield outputs
    elif isinstance(outputs, (list, tuple)):
        for one in outputs:
            yield from _tensors_in(one)
    elif isinstance(outputs, dict):
        for one in outputs.values():
            yield from _tensors_in(one)
