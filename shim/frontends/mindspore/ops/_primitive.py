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
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import framework_of, new_like
from shim.core.work import Work
from shim.errors import ShimError
from shim.frontends.mindspore import _groups
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._tensors import Shape, shape_of

__all__ = [
    "CommunicationPrimitive",
    "GroupPrimitive",
    "PlainPrimitive",
    "Shape",
    "SignalPrimitive",
    "compiled",
    "instance_of",
    "plain",
]


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


class GroupPrimitive:
    """What is made with a group, in which it has a rank, and says its errors in its ``caller``'s words."""

    caller: ClassVar[Caller]
    is_collective: ClassVar[bool] = True  # so that all ranks of the group take part in a call

    group: str
    rank: int
    rank_size: int

    if TYPE_CHECKING:
        attrs: dict[str, Any]
        init_attrs: dict[str, Any]

        def begin(self, arguments: Mapping[str, Any]) -> None: ...
        def add_prim_attr(self, name: str, value: Any) -> Any: ...

    def rank_now(self) -> int:
        """Return this process's rank in the group."""
        return _groups.answer(self.caller, self.group, lambda found: found.rank, "RANK_ID", 0)

    def ranks_now(self) -> int:
        """Return the number of ranks in the group."""
        return _groups.answer(self.caller, self.group, lambda found: found.size, "RANK_SIZE", 1)

    def refuse(self, error: ShimError) -> NoReturn:
        """Raise *error*, and let the other ranks of the group know if they are in the same call."""
        if not self.group or not _groups.is_initialized():
            raise self.caller.explain(error)
        group = _groups.known_group(self.caller, self.group)
        if not self.is_collective:
            raise self.caller.explain(error, group)
        calls.refuse(self.caller, group, error)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = type(self)(**copy.deepcopy(self.init_attrs, memo))
        for name in self.attrs:
            copied.add_prim_attr(name, getattr(self, name))
        return copied


class CommunicationPrimitive(GroupPrimitive):
    """A collective as an object: made with its group, called with tensors, differentiable where they are MindSpore's.

    A subclass calls ``set_up`` in its constructor and defines ``output_shape``, ``_communicate`` and ``get_bprop``.
    """

    inputs: ClassVar[tuple[str, ...]] = ("input_x",)

    kind: Callable[..., Any]  # the class, without what makes it MindSpore's or a plain one

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        del arguments, named  # they are the constructor's, whose signature each subclass spells out
        return instance_of(cls, "CompiledPrimitive")

    def set_up(self, group: str, arguments: Mapping[str, Any]) -> None:
        """Become an object made with *arguments* for the group called *group*, and note the caller's place in it.

        Before initialisation the environment says rank and size, as MindSpore does.
        """
        name = _groups.string(self.caller, "{group}", group)
        self.begin(arguments)
        self.add_prim_attr("group", name)
        self.add_prim_attr("rank", self.rank_now())
        self.add_prim_attr("rank_size", self.ranks_now())

    def adjoint(self, kind: Callable[..., Any], **arguments: Any) -> Any:
        """Return the primitive of *kind* in the same group that the gradient needs, always the same object.

        That of a plain primitive is plain too, so that MindSpore gets no kernel of it.
        """
        arguments.setdefault("group", self.group)
        known: dict[Any, Any] = self.__dict__.setdefault("_adjoints", {})
        key = (kind, tuple(arguments.items()))
        if key not in known:
            known[key] = plain(kind, arguments) if isinstance(self, PlainPrimitive) else kind(**arguments)
        return known[key]

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        tensors = self.tensors_in(args)
        if tensors and framework_of(type(tensors[0])) == "mindspore":
            return compiled().run_and_record(self, tensors)
        return self.forward(*tensors)

    def tensors_in(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the tensors among the *arguments* of a call: one for each of ``inputs``."""
        if len(arguments) != len(self.inputs):
            wanted = " and ".join(self.inputs) or "no arguments"
            self.refuse(ArgumentTypeError(f"must be called with {wanted}, got {len(arguments)} arguments"))
        return arguments

    def forward(self, *tensors: Any) -> Any:
        """Return a new tensor of the kind of the first of *tensors* with the collective's result."""
        group = _groups.known_group(self.caller, self.group)
        try:
            output = self._new_output(self.output_shape(*map(shape_of, tensors)), *tensors)
        except ShimError as error:
            self.refuse(error)
        self._communicate(group, output, *tensors).wait()
        return output

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        """Return the tensor of *shape* that ``_communicate`` fills."""
        return new_like(tensors[0], shape)

    def output_shape(self, *shapes: Shape) -> Any:
        """Return the shape of the output for inputs of *shapes*; a tuple of shapes where the output is a tuple.

        Raises ArgumentError for shapes that the primitive does not take.
        """
        raise NotImplementedError

    def output_dtype(self, *dtypes: Any) -> Any:
        """Return MindSpore's dtype of the output for inputs of *dtypes*; a tuple of them where the output is a tuple."""
        return dtypes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        """Prepare the collective that fills *output*."""
        raise NotImplementedError

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient, as MindSpore defines it: a function that MindSpore's compiler can read.

        Its parameters are the inputs, the output and the output's gradient, its result the gradients of the inputs.
        """
        raise NotImplementedError


class SignalPrimitive(CommunicationPrimitive):
    """A collective without tensors. What it returns, a tensor of shape (1,), means nothing."""

    inputs = ()

    def __call__(self, *args: Any) -> Any:
        super().__call__(*args)
        mindspore = sys.modules.get("mindspore")
        return None if mindspore is None else mindspore.Tensor([0], dtype=mindspore.float32)

    def forward(self, *tensors: Any) -> Any:
        self.signal(_groups.known_group(self.caller, self.group)).wait()
        return tensors

    def signal(self, group: ProcessGroup) -> Work:
        """Prepare the collective."""
        raise NotImplementedError

    def output_shape(self, *shapes: Shape) -> Any:
        return (*shapes, 1)

    def output_dtype(self, *dtypes: Any) -> Any:
        return (*dtypes, sys.modules["mindspore"].float32)[0]

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: there is nothing that it could be taken for."""

        def _gradient(_output: Any, _dout: Any) -> tuple[Any, ...]:
            return ()

        return _gradient


def instance_of(kind: Any, base_name: str) -> Any:
    """Return an empty object of *kind*, which where MindSpore is loaded is a *base_name* of ``_compiled`` too."""
    if issubclass(kind, PlainPrimitive):
        return object.__new__(kind)
    base = getattr(compiled(), base_name) if "mindspore" in sys.modules else PlainPrimitive
    return base.__new__(kind if issubclass(kind, base) else _joined(kind, base))


def plain(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """Return an object of *kind* made with *arguments* that is no primitive of MindSpore's."""
    return _joined(kind, PlainPrimitive)(**arguments)


@functools.cache
def _joined(kind: Any, base: Any) -> Any:
    return type(kind.__name__, (kind, base), {"__doc__": kind.__doc__, "__module__": kind.__module__, "kind": kind})


@functools.cache
def compiled() -> Any:
    """Return the module for MindSpore's side, which can be imported only once MindSpore is loaded."""
    return importlib.import_module("shim.frontends.mindspore.ops._compiled")
