"""What an engine is: one method per row of the table of collectives, each of which prepares an operation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from shim.core.reduce_ops import ReduceOp
from shim.core.work import EngineWork

__all__ = ["Engine", "Splits", "Tensor", "Tensors"]

Tensor = Any
Tensors = Any  # one tensor, cut along dimension 0, or a sequence of one tensor per rank
Splits = Sequence[int] | None


class Engine(Protocol):
    """Carries out the collectives of one group, for the calling rank.

    Ranks are group ranks. A method checks its arguments against each other (raising ``ArgumentError`` or
    ``TensorError`` whose messages name arguments by role, ``{output}``), and returns a prepared operation:
    nothing is sent before it is waited for or started. Or it carries the operation out *now*, after all that were started
    before, and returns None or raises what ended it, which is the fastest way.

    ``outputs`` or ``inputs`` is either one tensor, whose elements are the ranks' parts one after the other, or a
    sequence of ``size`` tensors. Split sizes are rows of dimension 0; None means equal parts. *whole* asks for the one
    tensor, and, where the parts are those of ``input`` or ``output``, for their shape, stacked or one after the other.
    Tensors of one call may alias only where the frameworks allow it: an in-place all_reduce, broadcast or reduce, and
    an input that is this rank's own part of the output.
    """

    name: str

    @abstractmethod
    def broadcast(self, tensor: Tensor, root: int, now: bool = False) -> EngineWork | None: ...

    @abstractmethod
    def all_reduce(
        self, output: Tensor, input: Tensor, op: ReduceOp, factor: float, now: bool = False
    ) -> EngineWork | None: ...

    @abstractmethod
    def reduce(
        self, output: Tensor | None, input: Tensor, op: ReduceOp, factor: float, root: int, now: bool = False
    ) -> EngineWork | None:
        """Prepare a reduce; ``output`` is read on the root alone, and no other rank's memory is written."""

    @abstractmethod
    def all_gather(
        self, outputs: Tensors, input: Tensor, output_splits: Splits, now: bool = False, whole: bool = False
    ) -> EngineWork | None: ...

    @abstractmethod
    def gather(
        self, outputs: Tensors | None, input: Tensor, output_splits: Splits, root: int, now: bool = False
    ) -> EngineWork | None: ...

    @abstractmethod
    def scatter(
        self, output: Tensor, inputs: Tensors | None, input_splits: Splits, root: int, now: bool = False
    ) -> EngineWork | None: ...

    @abstractmethod
    def reduce_scatter(
        self,
        output: Tensor,
        inputs: Tensors,
        input_splits: Splits,
        op: ReduceOp,
        factor: float,
        now: bool = False,
        whole: bool = False,
    ) -> EngineWork | None: ...

    @abstractmethod
    def all_to_all(
        self,
        outputs: Tensors,
        inputs: Tensors,
        output_splits: Splits,
        input_splits: Splits,
        now: bool = False,
        whole: bool = False,
    ) -> EngineWork | None: ...

    @abstractmethod
    def barrier(self, now: bool = False, before: str = "") -> EngineWork | None:
        """What the ranks say it comes *before* must be the same on all, in up to 128 bytes."""

    @abstractmethod
    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None: ...

    @abstractmethod
    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """Prepare a receive, or carry it out *now* and return who sent; a ``peer`` of None takes the first fitting message of any rank."""

    @abstractmethod
    def refuse(self, reason: str) -> None:
        """Tell the other ranks that this rank's call of the collective they are in failed before it began."""

    @abstractmethod
    def is_gone(self, rank: int) -> bool:
        """Tell whether group rank *rank* has died or left the group, as far as is known by now."""

    @abstractmethod
    def has_ended(self, rank: int) -> bool:
        """Tell whether group rank *rank* has died or left, and not merely given the group up."""

    @abstractmethod
    def is_usable(self) -> bool:
        """Tell whether a call can still be made: no rank was lost in one, none was late, and the group is not closed."""

    @abstractmethod
    def thresholds(self) -> Mapping[str, int]:
        """Return, by name and in bytes, from which sizes on operations go another way; they are the same on every rank."""

    @abstractmethod
    def helper_threads(self) -> int:
        """Return how many threads of this process share large operations with the one that carries them out."""

    @abstractmethod
    def close(self, why: str = "") -> None:
        """Leave the group, telling the other ranks *why* if there is something to tell, and release its memory, threads and files.

        Further calls raise StateError.
        """
