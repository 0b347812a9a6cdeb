"""What an engine is: one method for each row of the table of collectives, most of which have a default."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from shim._native import Request, check_call, set_reader_chooser
from shim.core import tensors
from shim.core.engines.defaults import DefaultMoves
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors.elements import Elements
from shim.core.work import EngineWork

if TYPE_CHECKING:
    from shim._native import CollectiveName
    from shim.core.control import Control

__all__ = ["Engine", "Request", "Splits", "Tensor", "Tensors", "check_call"]


class _SupportsDlpack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class _SupportsBuffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...


# To a type checker. MindSpore's tensors have neither method, and no types of their own.
Tensor = _SupportsDlpack | _SupportsBuffer | Elements
Tensors = Any  # one tensor, cut along dimension 0, or a sequence of one tensor per rank
Splits = Sequence[int] | None


set_reader_chooser(tensors.reader_for)


class Engine(DefaultMoves):
    """Carries out the collectives of one group, for the calling rank.

    An engine must give ``send``, ``receive`` and ``arrive``. The other collectives have defaults over these; an engine
    overrides what it does better: the collective itself, or only how its data is moved (``move_broadcast`` and the like).

    Ranks are group ranks. A method checks its arguments against each other (raising ``ArgumentError`` or
    ``TensorError`` whose messages name arguments by role, ``{output}``), and returns a prepared operation:
    nothing is sent before it is waited for or started. Or it carries the operation out *now*, after all that were started
    before, and returns None or raises what ended it, which is the fastest way.

    ``outputs`` or ``inputs`` is either one tensor, whose elements are the ranks' parts one after the other, or a
    sequence of ``size`` tensors. Split sizes are rows of dimension 0; None means equal parts. *whole* asks for the one
    tensor, and, where the parts are those of ``input`` or ``output``, for their shape, stacked or one after the other.
    Tensors of one call may alias only where the frameworks allow it: an in-place all_reduce, broadcast or reduce, and
    an input that is this rank's own part of the output.

    Any thread may prepare, start and wait for operations; those of a group are carried out one at a time, in the order in which
    they are started. Any thread may ask who is gone, give the group up, set its timeout and close it, during operations too.
    """

    name: str
    reaches_devices: ClassVar[bool] = False  # or its tensors are all in host memory
    control: Control | None = None  # the world's connections, where its ranks are on several hosts
    seal_key: bytes = b""  # for what is unpickled, where others than the ranks may write to the group's connections

    def _carry_out(
        self, collective: CollectiveName, move: Callable[[Request], object], now: bool, **call: Any
    ) -> EngineWork | None:
        """Prepare the operation that one of the methods below was called for, as ``check_call`` takes *call*, or carry it out *now*."""
        request = check_call(collective, self.rank, self.size, devices=self.reaches_devices, **call)
        return self.arrive(request, move, now)

    @abstractmethod
    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """Prepare an operation that begins with an agreement, and goes on with *move*.

        When every rank has arrived with the same call, *move* is called with the *request*: it has to move the data, by
        ``send`` and ``receive`` with ``defaults.COLLECTIVE_TAG``. When the calls differ, every rank gets
        ``MismatchError`` with the table of calls, and nothing is moved. What *move* raises ends the operation, and the
        group. The operations of a group have one order, the same on every rank.
        """

    def broadcast(self, tensor: Tensor, root: int, now: bool = False) -> EngineWork | None:
        """Copy the root's tensor to all."""
        return self._carry_out("broadcast", self.move_broadcast, now, inputs=tensor, root=root)

    def all_reduce(
        self, output: Tensor, input: Tensor, op: ReduceOp, factor: float, now: bool = False
    ) -> EngineWork | None:
        """Combine all ranks' inputs into every rank's output."""
        return self._carry_out(
            "all_reduce", self.move_all_reduce, now, outputs=output, inputs=input, op=op, factor=factor
        )

    def reduce(
        self, output: Tensor | None, input: Tensor, op: ReduceOp, root: int, factor: float, now: bool = False
    ) -> EngineWork | None:
        """Combine all ranks' inputs; ``output`` is read on the root alone, and no other rank's memory is written."""
        return self._carry_out(
            "reduce", self.move_reduce, now, outputs=output, inputs=input, op=op, factor=factor, root=root
        )

    def all_gather(
        self, outputs: Tensors, input: Tensor, output_splits: Splits, now: bool = False, whole: bool = False
    ) -> EngineWork | None:
        """Copy every rank's input into its part of every rank's outputs."""
        return self._carry_out(
            "all_gather",
            self.move_all_gather,
            now,
            outputs=outputs,
            inputs=input,
            output_splits=output_splits,
            whole=whole,
        )

    def gather(
        self, outputs: Tensors | None, input: Tensor, root: int, output_splits: Splits, now: bool = False
    ) -> EngineWork | None:
        """Copy every rank's input into its part of the root's outputs."""
        return self._carry_out(
            "gather", self.move_gather, now, outputs=outputs, inputs=input, output_splits=output_splits, root=root
        )

    def scatter(
        self, output: Tensor, inputs: Tensors | None, root: int, input_splits: Splits, now: bool = False
    ) -> EngineWork | None:
        """Copy each rank's part of the root's inputs into its output."""
        return self._carry_out(
            "scatter", self.move_scatter, now, outputs=output, inputs=inputs, input_splits=input_splits, root=root
        )

    def reduce_scatter(
        self,
        output: Tensor,
        inputs: Tensors,
        op: ReduceOp,
        factor: float,
        input_splits: Splits,
        now: bool = False,
        whole: bool = False,
    ) -> EngineWork | None:
        """Combine all ranks' inputs and give each rank its part."""
        return self._carry_out(
            "reduce_scatter",
            self.move_reduce_scatter,
            now,
            outputs=output,
            inputs=inputs,
            input_splits=input_splits,
            op=op,
            factor=factor,
            whole=whole,
        )

    def all_to_all(
        self,
        outputs: Tensors,
        inputs: Tensors,
        output_splits: Splits,
        input_splits: Splits,
        now: bool = False,
        whole: bool = False,
    ) -> EngineWork | None:
        """Copy part *j* of rank *i*'s inputs into part *i* of rank *j*'s outputs."""
        return self._carry_out(
            "all_to_all",
            self.move_all_to_all,
            now,
            outputs=outputs,
            inputs=inputs,
            output_splits=output_splits,
            input_splits=input_splits,
            whole=whole,
        )

    def barrier(self, now: bool = False, before: str = "") -> EngineWork | None:
        """Wait until every rank has called this; *before*, at most 128 bytes, must be the same text on all ranks."""
        return self._carry_out("barrier", self.move_barrier, now, before=before)

    @abstractmethod
    def refuse(self, reason: str) -> None:
        """Tell the other ranks that this rank's call of the collective they are in failed before it began."""

    @abstractmethod
    def give_up(self, why: str) -> None:
        """Have the group be of no use any more, here and, once they hear of it, on the other ranks, because of *why*."""

    @abstractmethod
    def is_gone(self, rank: int) -> bool:
        """Tell whether group rank *rank* has died or left the group, as far as is known by now."""

    @abstractmethod
    def has_left(self, rank: int) -> bool:
        """Tell whether group rank *rank* has left in good order: it has neither died, nor given the group up, nor ended by an error."""

    @abstractmethod
    def ending_of(self, rank: int) -> str:
        """Tell which rank group rank *rank* is and how it died, left, or gave the group up; nothing while ``is_gone`` is false."""

    @abstractmethod
    def has_ended(self, rank: int) -> bool:
        """Tell whether group rank *rank* has died or left, and not merely given the group up."""

    @abstractmethod
    def is_usable(self) -> bool:
        """Tell whether a call can still be made: no rank was lost in one, none was late, and the group is not closed."""

    @abstractmethod
    def set_timeout(self, seconds: float) -> None:
        """Set the timeout, in seconds, of this rank's waits from now on."""

    def for_device(self, make: Callable[[Engine], Engine]) -> Engine:
        """Return the engine of the group for tensors on a device, which *make* makes of the one that carries out calls in host memory."""
        return make(self)

    def figures(self) -> str:
        """Return what ``shim.explain()`` tells of how this engine works in this group; nothing where there is nothing to tell."""
        return ""

    @abstractmethod
    def close(self, why: str = "") -> None:
        """Leave the group, telling the other ranks *why* if there is something to tell, and release its memory, threads and files.

        Further calls raise StateError.
        """
