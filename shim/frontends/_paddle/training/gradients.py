"""The gradients that a backward has left on parameters, averaged over a group. Import this only where paddle is loaded."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from shim.core import calls, tensors
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp

_paddle: Any = sys.modules["paddle"]


class Gradients:
    """The gradients of *parameters*, which every rank of *group* has in the same order.

    At the end of a backward that was expected, the ranks average them in as few calls as *buffer_size* (bytes) allows; the first parameters,
    whose gradients come last, have buffers of *last_buffer_size*. A parameter that only some ranks have used counts as 0 on the others; one that
    none has used is left without a gradient.
    """

    def __init__(
        self, caller: Caller, group: ProcessGroup, parameters: Sequence[Any], buffer_size: int, last_buffer_size: int
    ) -> None:
        self.caller = caller
        self.group = group
        self.parameters = parameters
        self.buffer_size = buffer_size
        self.last_buffer_size = last_buffer_size
        self._expected = False
        self._begun = False
        came = weakref.WeakMethod(self._came)  # the parameters are not to keep alive what they are wrapped in
        for parameter in parameters:
            parameter._register_backward_hook(lambda: _call(came, False))

    def expect_nothing(self) -> None:
        """Leave the gradients of the next backward as they are, unless it goes through outputs from before."""
        self._expected = False

    def expect(self, outputs: Sequence[Any]) -> None:
        """Average after the next backward that comes to the parameters, and after every one through *outputs*."""
        self._expected, self._begun = True, False
        came = weakref.WeakMethod(self._came)
        for output in outputs:
            if not output.stop_gradient:
                output.register_hook(lambda _: _call(came, True))

    def _came(self, through_output: bool) -> None:
        """A backward that came through an output takes part even if it uses no parameter, as the other ranks wait."""
        if (self._expected or through_output) and not self._begun:
            self._begun = True
            _paddle.base.core.eager._add_backward_final_hook(self._average)  # runs once

    def _average(self) -> None:
        if not self._begun:  # of a backward that has failed
            return
        self._begun = self._expected = False
        with _paddle.no_grad():
            owners = [parameter.grad is not None for parameter in self.parameters]
            used = _paddle.to_tensor(owners, dtype="int32")
            calls.barrier(self.caller, self.group, True, "averaging gradients")
            self._all_reduce(used, ReduceOp.SUM)
            having = [one for one, ranks in zip(self.parameters, used.tolist(), strict=True) if ranks]
            for parameter in having:
                if parameter.grad is None:
                    parameter.grad = _paddle.zeros_like(parameter)
            for part in reversed(list(self._parts(having))):
                self._average_together(part)

    def _average_together(self, parameters: Sequence[Any]) -> None:
        gradients = [parameter.grad for parameter in parameters]
        flat = _paddle.concat([gradient.flatten() for gradient in gradients])
        self._all_reduce(flat, ReduceOp.AVG)
        parts = flat.split([gradient.size for gradient in gradients])
        for parameter, gradient, part in zip(parameters, gradients, parts, strict=True):
            parameter.grad = part.reshape(gradient.shape)

    def _all_reduce(self, tensor: Any, op: ReduceOp) -> None:
        calls.all_reduce(self.caller, self.group, tensor, tensor, op).wait()

    def _parts(self, parameters: Sequence[Any]) -> Iterator[list[Any]]:
        """Yield the *parameters* that go into one buffer, whose gradients are of one dtype."""
        by_dtype: dict[str, list[Any]] = {}
        for parameter in parameters:
            by_dtype.setdefault(tensors.dtype_name(parameter.grad), []).append(parameter)
        limit = self.last_buffer_size
        for alike in by_dtype.values():
            part: list[Any] = []
            bytes = 0
            for parameter in alike:
                size = parameter.grad.size * parameter.grad.element_size()
                if part and bytes + size > limit:
                    yield part
                    part, bytes, limit = [], 0, self.buffer_size
                part.append(parameter)
                bytes += size
            yield part


def _call(method: weakref.WeakMethod[Any], through_output: bool) -> None:
    found = method()
    if found is not None:
        found(through_output)
