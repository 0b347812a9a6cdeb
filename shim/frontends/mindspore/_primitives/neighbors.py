"""NeighborExchange: tensors to some ranks of the group and from some."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import Batch, Work
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._gradients.recording import is_recording
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import integers, sequence
from shim.frontends.mindspore._primitives.cells import CellPrimitive
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore._tensors import EmptyTensor, shape_of


class NeighborExchange(CellPrimitive):
    """Send the i-th of a tuple of tensors, of *send_shapes*[i], to rank *send_rank_ids*[i] of *group*, and return a tuple.

    Its i-th tensor is of *recv_shapes*[i] and dtype *recv_type*, and comes from rank *recv_rank_ids*[i].
    Raises: TypeError for arguments of wrong types; ValueError for lengths, shapes and ranks that do not fit.
    Deviates: works in PyNative mode too; where MindSpore is loaded, it is a Cell, because a Primitive's kernels take no
    tuples; on a rank that only sends or only receives, gradients and compiled graphs raise: no gradient can reach it.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.NeighborExchange.html
    """

    caller = Caller("mindspore.ops.NeighborExchange", input="input_x")
    is_collective = False

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
        self.is_one_way = not (self.send_rank_ids and self.recv_rank_ids)
        mindspore = sys.modules.get("mindspore")
        if mindspore is not None:
            self.reshape, self.concat = mindspore.ops.Reshape(), mindspore.ops.Concat()

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        tensors = self.tensors_in(args)
        self._check(tuple(map(shape_of, tensors)))
        if self.records(tensors) or (not tensors and is_recording()):
            self._refuse_one_way("has no gradient")
            return self.construct(tensors)
        outputs = tuple(each.like(*tensors) for each in self.received)
        group = group_names.known_group(self.caller, self.group)
        exchange(self.caller, group, self.send_rank_ids, tensors, self.recv_rank_ids, outputs).wait()
        return tuple(each.as_asked(output) for each, output in zip(self.received, outputs, strict=True))

    def _check(self, shapes: tuple[Shape, ...]) -> None:
        if shapes != self.send_shapes:
            text = f"{{input}} must be tensors of send_shapes, which are {self.send_shapes}, got {shapes}"
            raise self.caller.explain(ArgumentError(text))

    def choose(self, *numbers: Any) -> CommunicationPrimitive:
        shapes, dtype = numbers
        self._refuse_one_way("cannot be in a compiled graph")
        self._check(tuple(map(tuple, shapes)))
        return _Packed(
            sent=tuple((peer, prod(shape)) for peer, shape in zip(self.send_rank_ids, self.send_shapes, strict=True)),
            received=tuple(
                (peer, prod(shape)) for peer, shape in zip(self.recv_rank_ids, self.recv_shapes, strict=True)
            ),
            dtypes=(dtype, self.recv_type),
            group=self.group,
        )

    def _refuse_one_way(self, what: str) -> None:
        if self.is_one_way:
            text = f"{what} on a rank that only sends or only receives\nUse Send and Receive there."
            raise self.caller.explain(UnsupportedError(text))

    def construct(self, input_x: Any) -> Any:
        shapes: Any = ()
        flat: Any = ()
        for tensor in input_x:
            shapes = (*shapes, tensor.shape)
            flat = (*flat, self.reshape(tensor, (-1,)))
        if self.is_one_way:
            return self.chosen(shapes, self.recv_type)()  # refuses; what is not returned would not be compiled
        received = self.chosen(shapes, input_x[0].dtype)(self.concat(flat))
        outputs: Any = ()
        for place in range(len(self.recv_shapes)):
            outputs = (*outputs, self.reshape(received[place], self.recv_shapes[place]))
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


def _shapes_of_packed(packed: Any, *_shapes: Shape) -> Any:
    return tuple((size,) for _, size in packed.received)


def _dtypes_of_packed(packed: Any, *_dtypes: Any) -> Any:
    return (packed.dtypes[1],) * len(packed.received)


class _Packed(CommunicationPrimitive):
    """NeighborExchange of one flat tensor of all that is sent, to a tuple of flat tensors.

    *sent* and *received* are pairs of a rank and a number of elements, *dtypes* those of what is sent and of what is received.
    """

    caller = NeighborExchange.caller
    is_collective = False

    sent: tuple[tuple[int, int], ...]
    received: tuple[tuple[int, int], ...]
    dtypes: tuple[Any, Any]

    def __init__(self, sent: Any, received: Any, dtypes: tuple[Any, Any], group: str) -> None:
        self.set_up(group, {"sent": sent, "received": received, "dtypes": dtypes, "group": group})
        self.sent, self.received, self.dtypes = sent, received, dtypes

    output_shape, output_dtype = _shapes_of_packed, _dtypes_of_packed

    def forward(self, *tensors: Any) -> Any:
        outputs = [EmptyTensor(self.dtypes[1], (size,)).like(*tensors) for _, size in self.received]
        ends = list(accumulate(size for _, size in self.sent))
        sent = [tensors[0][end - size : end] for (_, size), end in zip(self.sent, ends, strict=True)]
        group, to, of = group_names.known_group(self.caller, self.group), _peers(self.sent), _peers(self.received)
        exchange(self.caller, group, to, sent, of, outputs).wait()
        return tuple(outputs)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: what was received goes back."""
        back = self.adjoint(_Packed, sent=self.received, received=self.sent, dtypes=self.dtypes[::-1])
        depend, concat = sys.modules["mindspore"].ops.Depend(), sys.modules["mindspore"].ops.Concat()

        def _gradient(_input: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (concat(back(depend(concat(dout), output))),)

        return _gradient


def _peers(parts: tuple[tuple[int, int], ...]) -> list[int]:
    return [peer for peer, _ in parts]
