"""BatchISendIRecv: messages to and from several ranks at once. Ranks are ranks in the group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.tensors import copy_of
from shim.core.work import Batch
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore._arguments import refuse_tracing
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import integers, or_world, sequence
from shim.frontends.mindspore._primitives.cells import CellPrimitive
from shim.frontends.mindspore._primitives.plain import plain
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore._tensors import EmptyTensor, zeros


class _TensorCountError(ArgumentError, RuntimeError):
    """Another number of tensors than of sends."""


class BatchISendIRecv(CellPrimitive):
    """Send and receive at once: the i-th of *op_types*, "isend" or "irecv", is with rank *remote_ranks*[i] of *group*.

    It is called with a tuple of the tensors to send, in that order. *receive_shapes* and *receive_dtypes* are those of the tensors to
    receive. Returned is a tuple: at the place of an "irecv" what was received, of an "isend" a number that means nothing.
    Raises: TypeError for arguments of wrong types; ValueError for lengths that do not fit; RuntimeError for another number of
    tensors than of "isend".
    Deviates: where MindSpore is loaded, it is a Cell, because a Primitive's kernels take no tuples; raises if its gradient is
    needed; MindSpore has none.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.BatchISendIRecv.html
    """

    caller = Caller("mindspore.ops.BatchISendIRecv", input="input_x", peer="remote_ranks")
    is_collective = False

    def __init__(
        self,
        op_types: Sequence[str],
        remote_ranks: Sequence[int],
        receive_shapes: Sequence[Sequence[int]] | None = None,
        receive_dtypes: Sequence[Any] | None = None,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        mine = self.caller
        types = sequence(mine, "op_types", op_types)
        shapes = sequence(mine, "receive_shapes", () if receive_shapes is None else receive_shapes)
        dtypes = sequence(mine, "receive_dtypes", () if receive_dtypes is None else receive_dtypes)
        ranks = integers(mine, "remote_ranks", remote_ranks)
        if not all(isinstance(one, str) and one in ("isend", "irecv") for one in types):
            raise mine.explain(ArgumentError(f"op_types must be 'isend' or 'irecv', got {list(types)}"))
        for name, other, numbers in (
            ("op_types", "remote_ranks", (len(types), len(ranks))),
            ("receive_shapes", "receive_dtypes", (len(shapes), len(dtypes))),
            ("receive_shapes", "the 'irecv' in op_types", (len(shapes), types.count("irecv"))),
        ):
            if numbers[0] != numbers[1]:
                text = f"{name} must be as many as {other}, got {numbers[0]} and {numbers[1]}"
                raise mine.explain(ArgumentError(text))
        arguments = {
            "op_types": types,
            "remote_ranks": ranks,
            "receive_shapes": tuple(integers(mine, "receive_shapes", shape) for shape in shapes),
            "receive_dtypes": tuple(EmptyTensor.checked(mine, "receive_dtypes", dtype) for dtype in dtypes),
            "group": or_world(group),
        }
        self.set_up(or_world(group), arguments)

    def __call__(self, *args: Any) -> Any:
        refuse_tracing(self.caller)
        tensors = self.tensors_in(args)
        self._check(len(tensors))
        return plain(_Batch, dict(self.init_attrs))(*tensors)

    def choose(self, *numbers: Any) -> CommunicationPrimitive:
        self._check(numbers[0])
        return _Batch(**self.init_attrs)

    def _check(self, tensors: int) -> None:
        sends = self.init_attrs["op_types"].count("isend")
        if tensors != sends:
            text = f"{{input}} must be {sends} tensors, one for each 'isend' in op_types, got {tensors}"
            raise self.caller.explain(_TensorCountError(text))

    def construct(self, input_x: Any) -> Any:
        return self.chosen(len(input_x))(*input_x)


def _shapes_of_batch(batch: Any, *_shapes: Shape) -> Any:
    received = iter(batch.received)
    return tuple(next(received).shape if op_type == "irecv" else () for op_type in batch.op_types)


class _Batch(CommunicationPrimitive):
    """BatchISendIRecv with as many inputs as it sends tensors."""

    caller = BatchISendIRecv.caller
    is_collective = False

    op_types: tuple[str, ...]
    remote_ranks: tuple[int, ...]
    received: tuple[EmptyTensor, ...]

    def __init__(
        self,
        op_types: tuple[str, ...],
        remote_ranks: tuple[int, ...],
        receive_shapes: tuple[tuple[int, ...], ...],
        receive_dtypes: tuple[Any, ...],
        group: str,
    ) -> None:
        self.inputs = ("input_x",) * op_types.count("isend")  # type: ignore[misc]  # as many as it is made for
        self.received = tuple(map(EmptyTensor, receive_dtypes, receive_shapes))
        arguments = {"op_types": op_types, "remote_ranks": remote_ranks}
        received = {"receive_shapes": receive_shapes, "receive_dtypes": receive_dtypes}
        self.set_up(group, {**arguments, **received, "group": group})
        for name, value in arguments.items():
            self.add_prim_attr(name, value)

    def __call__(self, *args: Any) -> Any:
        received = iter(self.received)
        return tuple(
            next(received).as_asked(output) if op_type == "irecv" else output
            for op_type, output in zip(self.op_types, super().__call__(*args), strict=True)
        )

    def forward(self, *tensors: Any) -> Any:
        group = group_names.known_group(self.caller, self.group)
        sent, received = iter(tensors), iter(self.received)
        outputs, works = [], []
        for op_type, peer in zip(self.op_types, self.remote_ranks, strict=True):
            if op_type == "isend":
                tensor = next(sent)
                outputs.append(zeros(tensor, ()))
                works.append(calls.send(self.caller, group, copy_of(tensor), peer))
            else:
                outputs.append(next(received).like(*tensors))
                works.append(calls.receive(self.caller, group, outputs[-1], peer))
        Batch(works).wait()
        return tuple(outputs)

    output_shape = _shapes_of_batch

    def output_dtype(self, *dtypes: Any) -> tuple[Any, ...]:
        sent, received = iter(dtypes), iter(self.received)
        return tuple(next(received).dtype if op_type == "irecv" else next(sent) for op_type in self.op_types)

    def get_bprop(self) -> Callable[..., Any]:
        raise self.caller.explain(UnsupportedError("has no gradient, as in MindSpore\nUse Send and Receive."))
