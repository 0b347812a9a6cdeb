"""What the communication primitives have in common: how they are made, called and differentiated.

A class of primitives says three things: the shape of its output, the collective that fills it, and its gradient. Where
MindSpore is loaded, its instances are MindSpore's primitives too (``_compiled``), so that a compiled graph takes them
for what they are and asks them for their gradient; elsewhere they are plain objects for any other kind of tensor.
"""

from __future__ import annotations

import copy
import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import framework_of, new_like
from shim.core.work import Work
from shim.errors import ShimError, TensorError, UnsupportedError
from shim.frontends.mindspore import _groups
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._errors import ArgumentTypeError

__all__ = ["CommunicationPrimitive", "PlainPrimitive", "Shape", "TuplePrimitive", "plain"]

Shape = tuple[int, ...]


class PlainPrimitive:
    """The attributes of a MindSpore primitive, for where there is no MindSpore."""

    name: str
    attrs: dict[str, Any]

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Start with no attributes, as an object made with *arguments*."""
        self.name = type(self).__name__
        self.attrs = {}
        self.init_attrs = dict(arguments)

    def add_prim_attr(self, name: str, value: Any) -> Any:
        """Set the attribute called *name*, and return the primitive."""
        setattr(self, name, value)
        self.attrs[name] = value
        return self

    def get_attr_dict(self) -> dict[str, Any]:
        """Return what ``add_prim_attr`` has set."""
        return self.attrs


class CommunicationPrimitive:
    """A collective as an object: made with its group, called with tensors, differentiable where they are MindSpore's.

    A subclass calls ``set_up`` in its constructor and defines ``output_shape``, ``_communicate`` and ``get_bprop``.
    """

    caller: ClassVar[Caller]
    inputs: ClassVar[tuple[str, ...]] = ("input_x",)

    group: str
    rank: int
    rank_size: int

    if TYPE_CHECKING:
        attrs: dict[str, Any]
        init_attrs: dict[str, Any]

        def begin(self, arguments: Mapping[str, Any]) -> None: ...
        def add_prim_attr(self, name: str, value: Any) -> Any: ...

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        del arguments, named  # they are the constructor's, whose signature each subclass spells out
        return _made(cls, "CompiledPrimitive")

    def set_up(self, group: str, arguments: Mapping[str, Any]) -> None:
        """Become an object made with *arguments* for the group called *group*, and note the caller's place in it.

        Before initialisation the environment says rank and size, as MindSpore does.
        """
        name = _groups.string(self.caller, "{group}", group)
        self.begin(arguments)
        self.add_prim_attr("group", name)
        self.add_prim_attr("rank", self.rank_now())
        self.add_prim_attr("rank_size", self.ranks_now())

    def rank_now(self) -> int:
        """Return this process's rank in the group."""
        return _groups.answer(self.caller, self.group, lambda found: found.rank, "RANK_ID", 0)

    def ranks_now(self) -> int:
        """Return the number of ranks in the group."""
        return _groups.answer(self.caller, self.group, lambda found: found.size, "RANK_SIZE", 1)

    def adjoint(self, kind: Callable[..., Any], **arguments: Any) -> Any:
        """Return the primitive of *kind* in the same group that the gradient needs, always the same object."""
        known: dict[Any, Any] = self.__dict__.setdefault("_adjoints", {})
        if kind not in known:
            known[kind] = kind(group=self.group, **arguments)
        return known[kind]

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        tensors = self.tensors_in(args)
        if framework_of(type(tensors[0])) == "mindspore":
            return _compiled().run_and_record(self, tensors)
        return self.forward(*tensors)

    def tensors_in(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the tensors among the *arguments* of a call: one for each of ``inputs``."""
        if len(arguments) != len(self.inputs):
            raise self.caller.explain(
                ArgumentTypeError(f"must be called with {' and '.join(self.inputs)}, got {len(arguments)} arguments")
            )
        return arguments

    def forward(self, *tensors: Any) -> Any:
        """Return a new tensor of the kind of the first of *tensors* with the collective's result."""
        group = _groups.known_group(self.caller, self.group)
        try:
            output = self._new_output(tensors[0], self.output_shape(*map(_shape_of, tensors)))
        except ShimError as error:
            calls.refused(self.caller, group, error)
            raise
        self._communicate(group, output, *tensors).wait()
        return output

    def _new_output(self, tensor: Any, shape: Shape) -> Any:
        """Return the tensor that ``_communicate`` fills."""
        return new_like(tensor, shape)

    def output_shape(self, *shapes: Shape) -> Shape:
        """Return the shape of the output for inputs of *shapes*. Raises ArgumentError for shapes it does not take."""
        raise NotImplementedError

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        """Prepare the collective that fills *output*."""
        raise NotImplementedError

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient, as MindSpore defines it: a function that MindSpore's compiler can read.

        Its parameters are the inputs, the output and the output's gradient, its result the gradients of the inputs.
        """
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = type(self)(**copy.deepcopy(self.init_attrs, memo))
        for name in self.attrs:
            copied.add_prim_attr(name, getattr(self, name))
        return copied


class TuplePrimitive:
    """A primitive that does the same with each tensor of a tuple."""

    caller: ClassVar[Caller]
    each: CommunicationPrimitive

    if TYPE_CHECKING:

        def begin(self, arguments: Mapping[str, Any]) -> None: ...
        def add_prim_attr(self, name: str, value: Any) -> Any: ...

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        del arguments, named
        return _made(cls, "CompiledTuplePrimitive")

    def set_up(self, each: CommunicationPrimitive, arguments: Mapping[str, Any]) -> None:
        """Become an object made with *arguments* that calls *each* on the tensors."""
        self.begin(arguments)
        self.each = each
        for name, value in arguments.items():
            self.add_prim_attr(name, value)

    def __call__(self, *args: Any) -> Any:
        if len(args) != 1 or not isinstance(args[0], (list, tuple)):
            given = ", ".join(type(argument).__name__ for argument in args)
            raise self.caller.explain(
                TensorError(f"{{input}} must be a tuple of tensors, got {given}\nPass (tensor,).")
            )
        refuse_tracing(self.caller)
        self._agree_on_number(len(args[0]))
        return tuple(self.each(tensor) for tensor in args[0])

    def _agree_on_number(self, tensors: int) -> None:
        """Raise MismatchError on every rank of the group unless all have so many tensors, which are communicated singly."""
        group = _groups.known_group(self.caller, self.each.group)
        places = bytearray(tensors)  # its shape is compared
        calls.all_reduce(self.caller, group, places, places, ReduceOp.BOR).wait()


def _made(kind: Any, compiled: str) -> Any:
    """Return an empty object of *kind* that is one of MindSpore's too, as *compiled* says, where that is loaded."""
    if issubclass(kind, PlainPrimitive):
        return object.__new__(kind)
    base = getattr(_compiled(), compiled) if "mindspore" in sys.modules else PlainPrimitive
    return base.__new__(kind if issubclass(kind, base) else _joined(kind, base))


def plain(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """Return an object of *kind* made with *arguments* that is no primitive of MindSpore's."""
    return _joined(kind, PlainPrimitive)(**arguments)


@functools.cache
def _joined(kind: Any, base: Any) -> Any:
    return type(kind.__name__, (kind, base), {"__doc__": kind.__doc__, "__module__": kind.__module__})


@functools.cache
def _compiled() -> Any:
    """Return the module for MindSpore's side, which can be imported only once MindSpore is loaded."""
    return importlib.import_module("shim.frontends.mindspore.ops._compiled")


def _shape_of(tensor: Any) -> Shape:
    """Return the shape of *tensor*, from which a gradient must not be asked unless it is MindSpore's."""
    framework = framework_of(type(tensor))
    if not framework:
        raise TensorError(f"{{input}} must be a tensor, got {type(tensor).__name__}")
    if getattr(tensor, "requires_grad", False) and framework == "torch":
        raise UnsupportedError("{input} requires a gradient, which only MindSpore's tensors get\nPass tensor.detach().")
    if not getattr(tensor, "stop_gradient", True) and framework == "paddle":
        raise UnsupportedError("{input} requires a gradient, which only MindSpore's tensors get\nPass tensor.detach().")
    return tuple(tensor.shape)
