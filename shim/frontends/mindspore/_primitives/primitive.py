"""What the communication primitives have in common: how they are made, called and differentiated.

A class of primitives says three things: the shape of its output, the collective that fills it, and its gradient. Where
MindSpore is loaded, its instances are MindSpore's primitives too (``_compiled``), so that a compiled graph takes them
for what they are and asks them for their gradient; elsewhere they are plain objects for any other kind of tensor.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import framework_of, memory_like, tensor_of
from shim.core.work import Work
from shim.errors import ShimError, TensorError
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._gradients.recording import is_recorded
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._primitives.plain import PlainPrimitive, joined, plain
from shim.frontends.mindspore._tensors import Shape, shape_of

__all__ = [
    "CommunicationPrimitive",
    "GroupPrimitive",
    "PartsPrimitive",
    "Shape",
    "SignalPrimitive",
    "compiled",
    "instance_of",
]


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
        return group_names.answer(self.caller, self.group, lambda found: found.rank, "RANK_ID", 0)

    def ranks_now(self) -> int:
        """Return the number of ranks in the group."""
        return group_names.answer(self.caller, self.group, lambda found: found.size, "RANK_SIZE", 1)

    def refuse(self, error: ShimError) -> NoReturn:
        """Raise *error*, and let the other ranks of the group know if they are in the same call."""
        if not self.group or not group_names.is_initialized():
            raise self.caller.explain(error)
        group = group_names.known_group(self.caller, self.group)
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
        name = group_names.string(self.caller, "{group}", group)
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
        if len(args) != len(self.inputs):
            wanted = " and ".join(self.inputs) or "no arguments"
            self.refuse(ArgumentTypeError(f"must be called with {wanted}, got {len(args)} arguments"))
        if args and framework_of(type(args[0])) == "mindspore" and is_recorded(args):
            return compiled().recorded(self, args)
        return self.forward(*args)

    def forward(self, *tensors: Any) -> Any:
        """Return a new tensor of the kind of the first of *tensors* with the collective's result."""
        group = group_names.known_group(self.caller, self.group)
        try:
            output = self._new_output(self.output_shape(*map(shape_of, tensors)), *tensors)
        except ShimError as error:
            self.refuse(error)
        self._communicate(group, output, *tensors).wait()
        return tensor_of(output, tensors[0])

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        """Return the tensor of *shape* that ``_communicate`` fills, or memory for it."""
        return memory_like(tensors[0], shape)

    def output_shape(self, *shapes: Shape) -> Any:
        """Return the shape of the output for inputs of *shapes*; a tuple of shapes where the output is a tuple.

        Raises ArgumentError for shapes that the primitive does not take.
        """
        raise NotImplementedError

    def output_dtype(self, *dtypes: Any) -> Any:
        """Return MindSpore's dtype of the output for inputs of *dtypes*; a tuple of them where the output is a tuple."""
        return dtypes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        """Carry out the collective that fills *output*, as far as the engine does so at once."""
        raise NotImplementedError

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient, as MindSpore defines it: a function that MindSpore's compiler can read.

        Its parameters are the inputs, the output and the output's gradient, its result the gradients of the inputs.
        """
        raise NotImplementedError


class PartsPrimitive(CommunicationPrimitive):
    """A collective that reads and writes parts of its tensors: NumPy's slices of the memory, never MindSpore's.

    A slice of a MindSpore tensor is a copy while a gradient is recorded inside another, and after an error in
    what MindSpore differentiated, which it goes on recording. A result written into a copy is lost.
    """

    def forward(self, *tensors: Any) -> Any:
        if framework_of(type(tensors[0])) != "mindspore":
            return self.on_slices(*tensors)
        of_mindspore = sys.modules["mindspore"].Tensor
        for tensor in tensors:
            if not isinstance(tensor, of_mindspore):
                self.refuse(TensorError(f"{{input}} must be a dense tensor, got {type(tensor).__name__}"))
        return of_mindspore.from_numpy(self.on_slices(*(tensor.asnumpy() for tensor in tensors)))

    def on_slices(self, *tensors: Any) -> Any:
        """Return the result as ``forward`` does; a slice of any of *tensors* is a view of it."""
        return super().forward(*tensors)


class SignalPrimitive(CommunicationPrimitive):
    """A collective without tensors. What it returns, a tensor of shape (1,), means nothing."""

    inputs = ()

    def __call__(self, *args: Any) -> Any:
        super().__call__(*args)
        mindspore = sys.modules.get("mindspore")
        return None if mindspore is None else mindspore.Tensor([0], dtype=mindspore.float32)

    def forward(self, *tensors: Any) -> Any:
        self.signal(group_names.known_group(self.caller, self.group)).wait()
        return tensors

    def signal(self, group: ProcessGroup) -> Work:
        """Carry out the collective, as far as the engine does so at once."""
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
    return base.__new__(kind if issubclass(kind, base) else joined(kind, base))


def compiled() -> Any:
    """Return the module for MindSpore's side, which can be imported only once MindSpore is loaded."""
    from shim.frontends.mindspore._primitives import compiled

    return compiled
