"""Messages between two ranks, Send and Receive, and the Barrier. Ranks are ranks in the group."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import copy_of, framework_of
from shim.core.work import Work
from shim.errors import ShimError, UnsupportedError
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._gradients.recording import is_recording
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import integer, integers
from shim.frontends.mindspore._primitives.cells import CellPrimitive
from shim.frontends.mindspore._primitives.plain import plain
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape, SignalPrimitive, compiled
from shim.frontends.mindspore._tensors import EmptyTensor, made_dtype, made_shape


def _is_intermediate(tensor: Any) -> bool:
    """Tell whether *tensor* is one of MindSpore's that an operator made while a gradient was recorded."""
    return framework_of(type(tensor)) == "mindspore" and not tensor._is_leaf


class Barrier(SignalPrimitive):
    """Wait until every rank of *group* has called this.

    Raises: TypeError if *group* is no str.
    Deviates: returns None where MindSpore is not loaded.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.Barrier.html
    """

    caller = Caller("mindspore.ops.Barrier")

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"group": group})

    def signal(self, group: ProcessGroup) -> Work:
        return calls.barrier(self.caller, group, now=True)


class Send(CommunicationPrimitive):
    """Send the tensor to rank *dest_rank* of *group*, where the Receive with the same *sr_tag* takes it; return a copy.

    The gradient comes back over *group_back* and is added to the tensor's. A compiled graph asks for it only if what is returned
    is used, as in ``Depend()(x, send(x))``, PyNative mode too for a tensor that no operator made, and else only if the loss
    depends on the tensor.
    Raises: TypeError if *sr_tag* or *dest_rank* is no int, or *group* or *group_back* no str; ValueError for other ranks.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.Send.html
    """

    caller = Caller("mindspore.ops.Send", input="input_x", peer="dest_rank", tag="sr_tag")
    is_collective = False

    sr_tag: int
    dest_rank: int
    group_back: str

    def __init__(
        self,
        sr_tag: int,
        dest_rank: int,
        group: str = GlobalComm.WORLD_COMM_GROUP,
        group_back: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        numbers = {
            "sr_tag": integer(self.caller, "sr_tag", sr_tag),
            "dest_rank": integer(self.caller, "dest_rank", dest_rank),
        }
        back = group_names.string(self.caller, "group_back", group_back)
        self.set_up(group, {**numbers, "group": group, "group_back": back})
        for name, value in {**numbers, "group_back": back}.items():
            self.add_prim_attr(name, value)

    def __call__(self, *args: Any) -> Any:
        # A tensor that no operator made may outlive the recording, and a hook on it would, too.
        if len(args) == 1 and _is_intermediate(args[0]) and is_recording():
            refuse_tracing(self.caller)
            back = plain(_GradientOfSend, {"sr_tag": self.sr_tag, "rank": self.dest_rank, "group": self.group_back})
            self.forward(args[0])
            return compiled().copy_with_addition(args[0], back.forward)
        return super().__call__(*args)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        del shape
        return copy_of(tensors[0])

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        del tensors
        return calls.send(self.caller, group, output, self.dest_rank, self.sr_tag, True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: that of the copy that is returned, and what the receiver sends back."""
        back = self.adjoint(_GradientOfSend, sr_tag=self.sr_tag, rank=self.dest_rank, group=self.group_back)
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(_input: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (dout + back(depend(dout, output)),)

        return _gradient


class _GradientOfSend(CommunicationPrimitive):
    """Return the tensor like *dout* that *rank* sends back."""

    caller = Caller("mindspore.ops.Send (gradient)", input="dout", peer="dest_rank", tag="sr_tag")
    is_collective = False
    inputs = ("dout",)

    sr_tag: int
    peer: int

    def __init__(self, sr_tag: int, rank: int, group: str) -> None:
        self.set_up(group, {"sr_tag": sr_tag, "rank": rank, "group": group})
        self.add_prim_attr("sr_tag", sr_tag)
        self.add_prim_attr("peer", rank)

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        del tensors
        return calls.receive(self.caller, group, output, self.peer, self.sr_tag, True)

    def get_bprop(self) -> Callable[..., Any]:
        raise self.caller.explain(UnsupportedError("has no gradient of its own"))


class Receive(CellPrimitive):
    """Return the tensor of *shape* and *dtype* that rank *src_rank* of *group* sends with the same *sr_tag*.

    It is called without arguments, or, where a gradient is recorded, with one tensor whose contents mean nothing: when that
    one's gradient is asked for, it is 0, and that of what was received goes back over *group_back*; else none goes back.
    Raises: TypeError for arguments of wrong types; ValueError for ranks that are not in the group.
    Deviates: where MindSpore is loaded, it is a Cell, because a Primitive has a fixed number of inputs; *dtype* may be another
    framework's, whose tensor it then returns.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.Receive.html
    """

    caller = Caller("mindspore.ops.Receive", output="shape", peer="src_rank", tag="sr_tag")
    is_collective = False

    sr_tag: int
    src_rank: int
    shape: tuple[int, ...]
    dtype: Any
    group_back: str

    def __init__(
        self,
        sr_tag: int,
        src_rank: int,
        shape: Sequence[int],
        dtype: Any,
        group: str = GlobalComm.WORLD_COMM_GROUP,
        group_back: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        arguments = {
            "sr_tag": integer(self.caller, "sr_tag", sr_tag),
            "src_rank": integer(self.caller, "src_rank", src_rank),
            "shape": integers(self.caller, "shape", shape),
            "dtype": EmptyTensor.checked(self.caller, "dtype", dtype),
            "group": group,
            "group_back": group_names.string(self.caller, "group_back", group_back),
        }
        self.set_up(group, arguments)

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        if len(args) > 1:
            raise self.caller.explain(ArgumentTypeError(f"must be called with one tensor or none, got {len(args)}"))
        return plain(*self._member(len(args)))(*args)

    def _member(self, inputs: int) -> tuple[Any, dict[str, Any]]:
        return _ReceiveFor if inputs else _ReceiveAlone, dict(self.init_attrs)

    def choose(self, *numbers: Any) -> Any:
        kind, arguments = self._member(numbers[0])
        return kind(**arguments)

    def construct(self, *tensors: Any) -> Any:
        return self.chosen(len(tensors))(*tensors)


class _ReceiveAlone(CommunicationPrimitive):
    """Receive without an input."""

    caller = Receive.caller
    is_collective = False
    inputs: ClassVar[tuple[str, ...]] = ()

    sr_tag: int
    src_rank: int
    group_back: str
    new: EmptyTensor

    def __init__(
        self, sr_tag: int, src_rank: int, shape: tuple[int, ...], dtype: Any, group: str, group_back: str
    ) -> None:
        numbers = {"sr_tag": sr_tag, "src_rank": src_rank, "group_back": group_back}
        self.set_up(group, {**numbers, "shape": shape, "dtype": dtype, "group": group})
        for name, value in numbers.items():
            self.add_prim_attr(name, value)
        self.new = EmptyTensor(dtype, shape)

    def __call__(self, *args: Any) -> Any:
        if not args and is_recording():
            raise self._unrecorded()
        return self.new.as_asked(super().__call__(*args))

    def forward(self, *tensors: Any) -> Any:
        """Return what is received: a tensor of MindSpore's for one of MindSpore's, else what needs no MindSpore."""
        group = group_names.known_group(self.caller, self.group)
        output = self.new.like(*tensors)
        calls.receive(self.caller, group, output, self.src_rank, self.sr_tag, True).wait()
        return output

    output_shape, output_dtype = made_shape, made_dtype

    def get_bprop(self) -> Callable[..., Any]:
        raise self._unrecorded()

    def _unrecorded(self) -> ShimError:
        """Return the refusal: the sender would wait for a gradient that could not be asked for here."""
        what = "must be called with a tensor while a gradient is being recorded"
        hint = (
            "Pass one whose gradient is asked for, and that of what is received goes back; "
            "or a constant, mindspore.Tensor([0.0]), and none does."
        )
        return self.caller.explain(UnsupportedError(f"{what}\n{hint}"))


class _ReceiveFor(_ReceiveAlone):
    """Receive with an input, through whose gradient that of what is received is asked for."""

    inputs = ("input_x",)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: 0, when that of what was received has been sent back."""
        back = self.adjoint(Send, sr_tag=self.sr_tag, dest_rank=self.src_rank, group=self.group_back)
        ops = sys.modules["mindspore"].ops
        depend, zeros_like = ops.Depend(), ops.ZerosLike()

        def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (depend(zeros_like(input_x), back(depend(dout, output))),)

        return _gradient
