"""Primitives that are more than one operator: a tuple of tensors, or numbers in the call that decide the output's shape.

Where MindSpore is loaded they are Cells and no Primitives, because its Python kernels take neither: the compiler reads
``construct``, whose calls of ``chosen`` it carries out while it compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import framework_of
from shim.core.work import Work
from shim.errors import ArgumentError, ShimError, TensorError, UnsupportedError
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._gradients.recording import is_recording
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._primitives.plain import plain
from shim.frontends.mindspore._primitives.primitive import (
    CommunicationPrimitive,
    GroupPrimitive,
    SignalPrimitive,
    instance_of,
)

Sizes = tuple[int, ...]


class CellPrimitive(GroupPrimitive):
    """A primitive that has others do its work. A subclass calls ``set_up`` in its constructor."""

    if TYPE_CHECKING:
        chosen: Callable[..., Any]

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        del arguments, named  # they are the constructor's, whose signature each subclass spells out
        return instance_of(cls, "CompiledCell")

    def set_up(self, group: str, arguments: Mapping[str, Any]) -> None:
        """Become an object made with *arguments* for the group called *group*, and note the caller's place in it."""
        name = group_names.string(self.caller, "{group}", group)
        self.begin(arguments)
        for attribute, value in {**arguments, "group": name}.items():
            self.add_prim_attr(attribute, value)
        self.add_prim_attr("rank", self.rank_now())
        self.add_prim_attr("rank_size", self.ranks_now())

    def choose(self, *numbers: Any) -> CommunicationPrimitive:
        """Return the primitive that the compiled graph calls for *numbers*, which the compiler knows."""
        raise NotImplementedError

    def tensors_in(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the tensors in the tuple that must be the only one of a call's *arguments*."""
        if len(arguments) != 1 or not isinstance(arguments[0], (list, tuple)):
            given = ", ".join(type(argument).__name__ for argument in arguments)
            self.refuse(TensorError(f"{{input}} must be a tuple of tensors, got {given}\nPass (tensor,)."))
        return tuple(arguments[0])

    def records(self, tensors: tuple[Any, ...]) -> bool:
        """Tell whether MindSpore is recording what becomes of its *tensors*."""
        return any(framework_of(type(each)) == "mindspore" for each in tensors) and is_recording()


class TuplePrimitive(CellPrimitive):
    """A primitive that does the same, ``each``, with every tensor of a tuple.

    The ranks first agree on how many there are, but for one: that meets the agreement of another rank on another number,
    and both are refused as different collectives.
    """

    each: CommunicationPrimitive

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        tensors = self.tensors_in(args)
        if len(tensors) != 1:
            plain(_Agreement, {"number": len(tensors), "group": self.group}).forward()
        return tuple(self.each(tensor) for tensor in tensors)

    def choose(self, *numbers: Any) -> CommunicationPrimitive:
        return _Agreement(numbers[0], self.group)

    def construct(self, input_x: Any) -> Any:
        if len(input_x) != 1:
            self.chosen(len(input_x))()
        outputs: Any = ()
        for tensor in input_x:
            outputs = (*outputs, self.each(tensor))
        return outputs


class _Agreement(SignalPrimitive):
    """Raise MismatchError on every rank of the group unless all of them have the same *number* of tensors."""

    caller = Caller("mindspore.ops.Broadcast")

    number: int

    def __init__(self, number: int, group: str) -> None:
        self.set_up(group, {"number": number, "group": group})
        self.add_prim_attr("number", number)

    def signal(self, group: ProcessGroup) -> Work:
        return calls.barrier(self.caller, group, True, f"broadcast of a tuple of {self.number} tensors")


class SizedPrimitive(CellPrimitive):
    """A primitive whose call gives a tensor and then lists of numbers, which choose the primitive for the tensor."""

    sizes: ClassVar[tuple[str, ...]]

    def member(self, *sizes: Sizes) -> tuple[Any, dict[str, Any]]:
        """Return the class and the arguments of the primitive for *sizes*, which are as many as ``sizes``."""
        raise NotImplementedError

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        try:
            kind, arguments = self._member_for(args)
        except ShimError as error:
            self.refuse(error)
        return plain(kind, arguments)(args[0])

    def _member_for(self, arguments: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        if len(arguments) != 1 + len(self.sizes):
            wanted = ", ".join(("input_x", *self.sizes))
            raise ArgumentTypeError(f"must be called with {wanted}, got {len(arguments)} arguments")
        return self.member(*(_sizes_of(name, given) for name, given in zip(self.sizes, arguments[1:], strict=True)))

    def choose(self, *numbers: Any) -> Any:
        try:
            kind, arguments = self._member_for((None, *numbers))
        except ShimError as error:
            raise self.caller.explain(error) from None
        return kind(**arguments)


def _sizes_of(name: str, given: Any) -> Sizes:
    """Return the numbers in *given*, the argument called *name*: a list, or one of lists, or a tensor of integers."""
    sizes = tuple(_flattened(given.tolist() if framework_of(type(given)) else given))
    for size in sizes:
        if framework_of(type(size)):
            raise UnsupportedError(f"{name} must be a list or tuple of int in a compiled graph\nPass its tolist().")
        if not isinstance(size, int) or isinstance(size, bool):
            raise ArgumentTypeError(f"{name} must be a list, tuple or tensor of int, got {size!r} in it")
        if size < 0:
            raise ArgumentError(f"{name} must not be negative, got {list(sizes)}")
    return sizes


def _flattened(given: Any) -> Iterator[Any]:
    if isinstance(given, (list, tuple)):
        for each in given:
            yield from _flattened(each)
    else:
        yield given
