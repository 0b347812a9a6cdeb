"""NeighborExchange: tensors to some ranks of the group and from some."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any, ClassVar

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import Batch, Work
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore import _groups
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._groups import GlobalComm
from shim.frontends.mindspore.ops._cells import CellPrimitive
from shim.frontends.mindspore.ops._primitive import CommunicationPrimitive, Shape, compiled, shape_of
from shim.frontends.mindspore.ops.operations._checks import integers, sequence
from shim.frontends.mindspore.ops.operations._empty import EmptyTensor

__all__ = ["NeighborExchange"]


class NeighborExchange(CellPrimitive):
    """Send the i-th of a tuple of tensors, of *send_shapes*[i], to rank *send_rank_ids*[i] of *group*, and return a tuple.

    Its i-th tensor is of *recv_shapes*[i] and dtype *recv_type*, and comes from rank *recv_rank_ids*[i].
    Raises: TypeError for arguments of wrong types; ValueError for lengths, shapes and ranks that do not fit.
    Deviates: works in PyNative mode too; where MindSpore is loaded, it is a Cell and no Primitive, whose kernels take no
    tuples; on a rank that only sends or only receives, a gradient is refused, because nothing leads it there.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.NeighborExchange.html
    """

    caller = Caller("mindspore.ops.NeighborExchange", input="input_x")

    send_rank_ids: tuple[int, ...]
    recv_rank_ids: tuple[int, ...]
    recv_shapes: tuple[Shape, ...]
    send_shapes: tuple[Shape, ...]
    recv_type: Any

    def __init__(
        self,
        send_rank_ids: Sequence[int],
        recv_rank_ids: Sequence[int],
        recv_shapes: Sequence[Sequence[int]],
        send_shapes: Sequence[Sequence[int]],
        recv_type: Any,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        mine = self.caller
        arguments = {
            "send_rank_ids": integers(mine, "send_rank_ids", send_rank_ids),
            "recv_rank_ids": integers(mine, "recv_rank_ids", recv_rank_ids),
            "recv_shapes": tuple(
                integers(mine, "recv_shapes", each) for each in sequence(mine, "recv_shapes", recv_shapes)
            ),
            "send_shapes": tuple(
                integers(mine, "send_shapes", each) for each in sequence(mine, "send_shapes", send_shapes)
            ),
            "recv_type": EmptyTensor.checked(mine, "recv_type", recv_type),
            "group": group,
        }
        for ranks, shapes in (("send_rank_ids", "send_shapes"), ("recv_rank_ids", "recv_shapes")):
            if len(arguments[ranks]) != len(arguments[shapes]):
                raise mine.explain(ArgumentError(f"{shapes} must be as many as {ranks}, got {arguments[shapes]}"))
        self.set_up(group, arguments)
        self.received = tuple(EmptyTensor(recv_type, shape) for shape in arguments["recv_shapes"])
        sizes = tuple(map(prod, arguments["recv_shapes"]))
        self.places = tuple((end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True))
        mindspore = sys.modules.get("mindspore")
        if mindspore is not None:
            self.reshape, self.concat = mindspore.ops.Reshape(), mindspore.ops.Concat()

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        tensors = self.tensors_in(args)
        self._check(tuple(map(shape_of, tensors)))
        if self.records(tensors) or ("mindspore" in sys.modules and not tensors and compiled().is_recording()):
            if not self.send_rank_ids or not self.recv_rank_ids:
                raise _one_way(self.caller)
            return self.construct(tensors)
        outputs = tuple(each.like(*tensors) for each in self.received)
        group = _groups.known_group(self.caller, self.group)
        exchange(self.caller, group, self.send_rank_ids, tensors, self.recv_rank_ids, outputs).wait()
        return tuple(each.as_asked(output) for each, output in zip(self.received, outputs, strict=True))

    def _check(self, shapes: tuple[Shape, ...]) -> None:
        if shapes != self.send_shapes:
            text = f"{{input}} must be tensors of send_shapes, which are {self.send_shapes}, got {shapes}"
            raise self.caller.explain(ArgumentError(text))

    def choose(self, *numbers: Any) -> CommunicationPrimitive:
        shapes, dtype = numbers
        self._check(tuple(map(tuple, shapes)))
        return (_Packed if shapes else _PackedAlone)(  # type: ignore[return-value]
            sent=tuple((peer, prod(shape)) for peer, shape in zip(self.send_rank_ids, self.send_shapes, strict=True)),
            received=tuple(
                (peer, prod(shape)) for peer, shape in zip(self.recv_rank_ids, self.recv_shapes, strict=True)
            ),
            dtypes=(dtype, self.recv_type),
            group=self.group,
        )

    def construct(self, input_x: Any) -> Any:
        shapes: Any = ()
        flat: Any = ()
        for tensor in input_x:
            shapes = (*shapes, tensor.shape)
            flat = (*flat, self.reshape(tensor, (-1,)))
        if len(flat) == 0:
            received = self.chosen((), self.recv_type)()
        else:
            received = self.chosen(shapes, input_x[0].dtype)(self.concat(flat))
        outputs: Any = ()
        for place in range(len(self.places)):
            start, end = self.places[place]
            outputs = (*outputs, self.reshape(received[start:end], self.recv_shapes[place]))
        return outputs


def exchange(
    caller: Caller,
    group: ProcessGroup,
    to: Sequence[int],
    sent: Sequence[Any],
    of: Sequence[int],
    received: Sequence[Any],
) -> Work:
    """Prepare to send each of *sent* to its rank in *to*, and to receive each of *received* from its rank in *of*."""
    messages = [calls.send(caller, group, tensor, peer) for peer, tensor in zip(to, sent, strict=True)]
    return Batch(messages + [calls.receive(caller, group, each, peer) for peer, each in zip(of, received, strict=True)])


class _Packed(CommunicationPrimitive):
    """NeighborExchange of flat parts: *sent* and *received* are pairs of a rank and a number of elements.

    The output has one element that means nothing if nothing is received: a compiled graph knows no empty tensors.
    """

    caller = NeighborExchange.caller
    inputs: ClassVar[tuple[str, ...]] = ("input_x",)

    sent: tuple[tuple[int, int], ...]
    received: tuple[tuple[int, int], ...]
    dtypes: tuple[Any, Any]

    def __init__(self, sent: Any, received: Any, dtypes: tuple[Any, Any], group: str) -> None:
        self.set_up(group, {"sent": sent, "received": received, "dtypes": dtypes, "group": group})
        self.sent, self.received, self.dtypes = sent, received, dtypes

    def output_shape(self, *_shapes: Shape) -> Any:
        return (max(sum(size for _, size in self.received), 1),)

    def output_dtype(self, *_dtypes: Any) -> Any:
        return self.dtypes[1]

    def forward(self, *tensors: Any) -> Any:
        output = EmptyTensor(self.dtypes[1], self.output_shape()).like(*tensors)
        group, received = _groups.known_group(self.caller, self.group), _parts(output, self.received)
        sent = _parts(tensors[0], self.sent) if tensors else []
        exchange(
            self.caller, group, [peer for peer, _ in self.sent], sent, [peer for peer, _ in self.received], received
        ).wait()
        return output

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: what was received goes back."""
        if not self.sent or not self.received:
            raise _one_way(self.caller)
        back = self.adjoint(_Packed, sent=self.received, received=self.sent, dtypes=self.dtypes[::-1])
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(_input: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (back(depend(dout, output)),)

        return _gradient


class _PackedAlone(_Packed):
    """The same on a rank that sends nothing."""

    inputs = ()


def _parts(flat: Any, sizes: tuple[tuple[int, int], ...]) -> list[Any]:
    """Return views of the parts of *flat*."""
    ends = list(accumulate(size for _, size in sizes))
    return [flat[end - size : end] for (_, size), end in zip(sizes, ends, strict=True)]


def _one_way(caller: Caller) -> Exception:
    text = (
        "has a gradient only on ranks that both send and receive\nUse Send and Receive where a rank does one of them."
    )
    return caller.explain(UnsupportedError(text))
