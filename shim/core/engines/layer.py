"""Engines that stand on another one of the same group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shim.core.engines.base import Engine, Request, Splits, Tensor, Tensors

if TYPE_CHECKING:
    from shim.core.reduce_ops import ReduceOp
    from shim.core.work import EngineWork


class Layer(Engine):
    """Has *under*, in which this rank is *rank* among *size*, agree, send and receive, and tell of other ranks and of its end.

    Of the collectives it has the defaults, which are made of these. *under* need not have more: it may be a group that is carried.
    """

    def __init__(self, under: Engine, rank: int, size: int) -> None:
        self.under, self.rank, self.size = under, rank, size

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        return self.under.arrive(request, move, now)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        return self.under.send(tensor, peer, tag, now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        return self.under.receive(tensor, peer, tag, now)

    def refuse(self, reason: str) -> None:
        self.under.refuse(reason)

    def give_up(self, why: str) -> None:
        self.under.give_up(why)

    def is_gone(self, rank: int) -> bool:
        return self.under.is_gone(rank)

    def has_left(self, rank: int) -> bool:
        return self.under.has_left(rank)

    def ending_of(self, rank: int) -> str:
        return self.under.ending_of(rank)

    def has_ended(self, rank: int) -> bool:
        return self.under.has_ended(rank)

    def is_usable(self) -> bool:
        return self.under.is_usable()

    def set_timeout(self, seconds: float) -> None:
        self.under.set_timeout(seconds)

    def close(self, why: str = "") -> None:
        self.under.close(why)


class CallLayer(Layer):
    """Passes every call on to *under* whole, by one method."""

    @abstractmethod
    def _pass_on(
        self,
        name: str,
        method: Callable[..., Any],
        writes: Tensors | None,
        reads: Tensors | None,
        tensors: tuple[Any, ...],
        arguments: tuple[Any, ...],
        now: bool,
        *more: Any,
    ) -> Any:
        """Carry out the call *name* by *method* of ``under``, which takes *tensors*, *arguments*, *now* and *more*, in this order.

        Of the tensors this rank *writes* some and *reads* some. They are all that the call has, and outputs come first.
        """

    def broadcast(self, tensor: Tensor, root: int, now: bool = False) -> Any:
        writes, reads = (None, tensor) if root == self.rank else (tensor, None)
        return self._pass_on("broadcast", self.under.broadcast, writes, reads, (tensor,), (root,), now)

    def all_reduce(self, output: Tensor, input: Tensor, op: ReduceOp, factor: float, now: bool = False) -> Any:
        method, arguments = self.under.all_reduce, (op, factor)
        return self._pass_on("all_reduce", method, output, input, (output, input), arguments, now)

    def reduce(
        self, output: Tensor | None, input: Tensor, op: ReduceOp, root: int, factor: float, now: bool = False
    ) -> Any:
        writes, arguments = output if root == self.rank else None, (op, root, factor)
        return self._pass_on("reduce", self.under.reduce, writes, input, (output, input), arguments, now)

    def all_gather(
        self, outputs: Tensors, input: Tensor, output_splits: Splits, now: bool = False, whole: bool = False
    ) -> Any:
        method, arguments = self.under.all_gather, (output_splits,)
        return self._pass_on("all_gather", method, outputs, input, (outputs, input), arguments, now, whole)

    def gather(
        self, outputs: Tensors | None, input: Tensor, root: int, output_splits: Splits, now: bool = False
    ) -> Any:
        writes, arguments = outputs if root == self.rank else None, (root, output_splits)
        return self._pass_on("gather", self.under.gather, writes, input, (outputs, input), arguments, now)

    def scatter(
        self, output: Tensor, inputs: Tensors | None, root: int, input_splits: Splits, now: bool = False
    ) -> Any:
        reads, arguments = inputs if root == self.rank else None, (root, input_splits)
        return self._pass_on("scatter", self.under.scatter, output, reads, (output, inputs), arguments, now)

    def reduce_scatter(
        self,
        output: Tensor,
        inputs: Tensors,
        op: ReduceOp,
        factor: float,
        input_splits: Splits,
        now: bool = False,
        whole: bool = False,
    ) -> Any:
        method, arguments = self.under.reduce_scatter, (op, factor, input_splits)
        return self._pass_on("reduce_scatter", method, output, inputs, (output, inputs), arguments, now, whole)

    def all_to_all(
        self,
        outputs: Tensors,
        inputs: Tensors,
        output_splits: Splits,
        input_splits: Splits,
        now: bool = False,
        whole: bool = False,
    ) -> Any:
        method, arguments = self.under.all_to_all, (output_splits, input_splits)
        return self._pass_on("all_to_all", method, outputs, inputs, (outputs, inputs), arguments, now, whole)

    def barrier(self, now: bool = False, before: str = "") -> Any:
        return self._pass_on("barrier", self.under.barrier, None, None, (), (), now, before)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> Any:
        return self._pass_on("send", self.under.send, None, tensor, (tensor,), (peer, tag), now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> Any:
        return self._pass_on("receive", self.under.receive, tensor, None, (tensor,), (peer, tag), now)
