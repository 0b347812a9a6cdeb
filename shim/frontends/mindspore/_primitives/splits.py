"""The primitives with unequal parts: their calls give the sizes, in elements of a tensor of one dimension.

What they return when nothing arrives is a tensor of shape () that means nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import memory_like
from shim.core.work import Work
from shim.errors import ArgumentError
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import integer, op_name, or_world
from shim.frontends.mindspore._primitives.cells import SizedPrimitive, Sizes
from shim.frontends.mindspore._primitives.primitive import CommunicationPrimitive, Shape
from shim.frontends.mindspore._primitives.reductions import slope_of
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS, ReduceOp
from shim.frontends.mindspore._tensors import zeros


class _OfSizes(CommunicationPrimitive):
    """What a primitive does for the sizes of one call; a subclass says how many elements go in and come out."""

    given: int
    taken: int

    def begin_with(self, group: str, **arguments: Any) -> None:
        """Become the primitive for *arguments*, which are attributes too."""
        self.set_up(group, {**arguments, "group": group})
        for name, value in arguments.items():
            self.add_prim_attr(name, value)

    def output_shape(self, *shapes: Shape) -> Shape:
        if shapes[0] != (self.given,) and not (self.given == 0 and shapes[0] == ()):
            raise ArgumentError(f"{{input}} must have shape ({self.given},), got {shapes[0]}")
        return (self.taken,) if self.taken else ()

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        return memory_like(tensors[0], shape) if shape else zeros(tensors[0], ())

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        given = tensors[0] if self.given else memory_like(tensors[0], (0,))
        return self._exchange(group, output if self.taken else memory_like(tensors[0], (0,)), given)

    def _exchange(self, group: ProcessGroup, output: Any, given: Any) -> Work:
        """Carry out the collective from *given*, of ``given`` elements, to *output*, of ``taken``."""
        raise NotImplementedError

    def gradient_of(self, back: Any, slope: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        """Return the gradient that *back* brings here, to which *slope* is applied; none of it for no elements."""
        ops, some = sys.modules["mindspore"].ops, self.given > 0
        depend, zeros_like = ops.Depend(), ops.ZerosLike()

        def _gradient(input_x: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            dx = back(depend(dout, output))
            dx = slope(input_x, dx) if some else depend(zeros_like(input_x), dx)
            return (dx,)

        return _gradient


def _check_count(sizes: Sizes, name: str, ranks: int) -> None:
    if len(sizes) != ranks:
        raise ArgumentError(f"{name} must have {ranks} elements, got {len(sizes)}")


class AlltoAllV(SizedPrimitive):
    """Send *send_numel_list*[j] blocks of *input_x* to rank j, and return *recv_numel_list*[i] blocks of every rank i.

    A block is *block_size* elements. The lists are lists, tuples or tensors of int; in a compiled graph no tensors.
    Raises: TypeError if *group* is no str or *block_size* no int; ValueError for sizes that do not fit.
    Deviates: where MindSpore is loaded, it is a Cell, because a Primitive's kernels take no lists.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.AlltoAllV.html
    """

    caller = Caller("mindspore.ops.AlltoAllV", input="input_x")
    sizes = ("send_numel_list", "recv_numel_list")

    block_size: int

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP, block_size: int = 1) -> None:
        size = integer(self.caller, "block_size", block_size)
        self.set_up(or_world(group), {"group": or_world(group), "block_size": size})

    def member(self, *sizes: Sizes) -> tuple[Any, dict[str, Any]]:
        for name, given in zip(self.sizes, sizes, strict=True):
            _check_count(given, name, self.ranks_now())
        return _parts(self, *sizes)

    def construct(self, input_x: Any, send_numel_list: Any, recv_numel_list: Any) -> Any:
        return self.chosen(tuple(send_numel_list), tuple(recv_numel_list))(input_x)


class AlltoAllVC(SizedPrimitive):
    """Send *send_count_matrix*[i*N + j] blocks of rank i's *input_x* to rank j: on every rank the same matrix of all N.

    A block is *block_size* elements; with *transpose* rank j sends them to rank i. The matrix is a list, of numbers or of
    rows, or a tensor; in a compiled graph no tensor.
    Raises: TypeError for arguments of wrong types; ValueError for a matrix or a tensor that does not fit.
    Deviates: where MindSpore is loaded, it is a Cell, because a Primitive's kernels take no lists.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.AlltoAllVC.html
    """

    caller = Caller("mindspore.ops.AlltoAllVC", input="input_x")
    sizes = ("send_count_matrix",)

    block_size: int
    transpose: bool

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP, block_size: int = 1, transpose: bool = False) -> None:
        size = integer(self.caller, "block_size", block_size)
        self.set_up(or_world(group), {"group": or_world(group), "block_size": size, "transpose": transpose})
        self.add_prim_attr("rank_id", self.rank)

    def member(self, *sizes: Sizes) -> tuple[Any, dict[str, Any]]:
        matrix, rank, ranks = sizes[0], self.rank_now(), self.ranks_now()
        _check_count(matrix, self.sizes[0], ranks * ranks)
        row, column = matrix[rank * ranks : (rank + 1) * ranks], matrix[rank::ranks]
        return _parts(self, column, row) if self.transpose else _parts(self, row, column)

    def construct(self, input_x: Any, send_count_matrix: Any) -> Any:
        return self.chosen(tuple(send_count_matrix))(input_x)


def _parts(primitive: AlltoAllV | AlltoAllVC, sent: Sizes, received: Sizes) -> tuple[Any, dict[str, Any]]:
    block, kind = primitive.block_size, _AlltoAllOfSizes if isinstance(primitive, AlltoAllV) else _AlltoAllOfMatrix
    sizes = {"sent": tuple(size * block for size in sent), "received": tuple(size * block for size in received)}
    return kind, {**sizes, "group": primitive.group}


class _AlltoAllOfSizes(_OfSizes):
    """Send *sent*[j] elements to rank j and receive *received*[i] of rank i."""

    caller = AlltoAllV.caller

    sent: Sizes
    received: Sizes

    def __init__(self, sent: Sizes, received: Sizes, group: str) -> None:
        self.begin_with(group, sent=sent, received=received)
        self.given, self.taken = sum(sent), sum(received)

    def _exchange(self, group: ProcessGroup, output: Any, given: Any) -> Work:
        return calls.all_to_all(self.caller, group, output, given, list(self.received), list(self.sent), True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: what was received goes back."""
        return self.gradient_of(self.adjoint(self.kind, sent=self.received, received=self.sent), slope_of(self, "sum"))


class _AlltoAllOfMatrix(_AlltoAllOfSizes):
    """The same for AlltoAllVC."""

    caller = AlltoAllVC.caller


class AllGatherV(SizedPrimitive):
    """Concatenate the tensors of all ranks of *group*, of which rank i's *input_x* has *output_split_sizes*[i] elements.

    The sizes are a list, tuple or tensor of int, the same on every rank; in a compiled graph no tensor.
    Raises: TypeError if *group* is no str; ValueError for sizes that do not fit.
    Deviates: where MindSpore is loaded, it is a Cell, because a Primitive's kernels take no lists.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.AllGatherV.html
    """

    caller = Caller("mindspore.ops.AllGatherV", input="input_x", output_splits="output_split_sizes")
    sizes = ("output_split_sizes",)

    mean_flag: bool

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"group": group})
        self.add_prim_attr("mean_flag", False)
        self.add_prim_attr("rank_id", self.rank)

    def member(self, *sizes: Sizes) -> tuple[Any, dict[str, Any]]:
        _check_count(sizes[0], self.sizes[0], self.ranks_now())
        return _AllGatherOfSizes, {"parts": sizes[0], "group": self.group}

    def construct(self, input_x: Any, output_split_sizes: Any) -> Any:
        return self.chosen(tuple(output_split_sizes))(input_x)


class _AllGatherOfSizes(_OfSizes):
    """Concatenate the ranks' tensors, of *parts* elements."""

    caller = AllGatherV.caller

    parts: Sizes

    def __init__(self, parts: Sizes, group: str) -> None:
        self.begin_with(group, parts=parts)
        self.given, self.taken = parts[self.rank], sum(parts)

    def _exchange(self, group: ProcessGroup, output: Any, given: Any) -> Work:
        return calls.all_gather(self.caller, group, output, given, list(self.parts), True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: the sum of all ranks' for this rank's part."""
        return self.gradient_of(self.adjoint(_ReduceScatterOfSizes, op="sum", parts=self.parts), slope_of(self, "sum"))


class ReduceScatterV(SizedPrimitive):
    """Combine the tensors *input_x* of all ranks by *op*, and give rank i the next *input_split_sizes*[i] elements.

    The sizes are a list, tuple or tensor of int, the same on every rank; in a compiled graph no tensor.
    Raises: TypeError if *op* or *group* is no str; ValueError for sizes that do not fit.
    Deviates: where MindSpore is loaded, it is a Cell, because a Primitive's kernels take no lists; has the right
    gradient for every *op*; MindSpore's is that of "sum".
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.ReduceScatterV.html
    """

    caller = Caller("mindspore.ops.ReduceScatterV", input="input_x", input_splits="input_split_sizes")
    sizes = ("input_split_sizes",)

    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"op": op_name(self.caller, op), "group": group})
        self.add_prim_attr("rank_id", self.rank)

    def member(self, *sizes: Sizes) -> tuple[Any, dict[str, Any]]:
        _check_count(sizes[0], self.sizes[0], self.ranks_now())
        return _ReduceScatterOfSizes, {"op": self.op, "parts": sizes[0], "group": self.group}

    def construct(self, input_x: Any, input_split_sizes: Any) -> Any:
        return self.chosen(tuple(input_split_sizes))(input_x)


class _ReduceScatterOfSizes(_OfSizes):
    """Combine the ranks' tensors by *op* and keep this rank's part of *parts* elements."""

    caller = ReduceScatterV.caller

    op: str
    parts: Sizes

    def __init__(self, op: str, parts: Sizes, group: str) -> None:
        self.begin_with(group, op=op, parts=parts)
        self.given, self.taken = sum(parts), parts[self.rank]

    def _exchange(self, group: ProcessGroup, output: Any, given: Any) -> Work:
        splits = list(self.parts)
        return calls.reduce_scatter(self.caller, group, output, given, REDUCE_OPS[self.op], 1.0, splits, True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: all ranks', concatenated, times what this rank's elements have to do with the result."""
        return self.gradient_of(self.adjoint(_AllGatherOfSizes, parts=self.parts), slope_of(self, self.op))


class _AllSwap(SizedPrimitive):
    """Send *send_size*[j] elements of *tensor_in* to rank j, and return *recv_size*[i] of every rank i in its columns.

    *tensor_in* has two dimensions, and the sizes, tensors of int64 (or lists of int), are those of whole rows.
    Raises: TypeError if *group* is no str; ValueError for sizes that do not fit.
    Deviates: takes lists too, and only lists in a compiled graph.
    """

    caller = Caller("mindspore.ops._AllSwap", input="tensor_in")
    sizes = ("send_size", "recv_size")

    def __init__(self, group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
        self.set_up(group, {"group": group})

    def member(self, *sizes: Sizes) -> tuple[Any, dict[str, Any]]:
        for name, given in zip(self.sizes, sizes, strict=True):
            _check_count(given, name, self.ranks_now())
        return _SwapOfSizes, {"sent": sizes[0], "received": sizes[1], "group": self.group}

    def construct(self, tensor_in: Any, send_size: Any, recv_size: Any) -> Any:
        return self.chosen(tuple(send_size), tuple(recv_size))(tensor_in)


class _SwapOfSizes(_AlltoAllOfSizes):
    """The same for rows, whose number the sizes give in elements."""

    caller = _AllSwap.caller

    def output_shape(self, *shapes: Shape) -> Shape:
        if len(shapes[0]) != 2:
            raise ArgumentError(f"{{input}} must have two dimensions, got shape {shapes[0]}")
        columns = shapes[0][1]
        for name, sizes in (("send_size", self.sent), ("recv_size", self.received)):
            if any(size % columns if columns else size for size in sizes):
                raise ArgumentError(f"{name} must be those of whole rows of {columns} elements, got {list(sizes)}")
        if self.given != shapes[0][0] * columns:
            raise ArgumentError(f"send_size must add up to {shapes[0][0] * columns} elements, got {self.given}")
        return (self.taken // columns if columns else 0, columns)

    def _new_output(self, shape: Any, *tensors: Any) -> Any:
        return memory_like(tensors[0], shape)

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        columns = max(tensors[0].shape[1], 1)
        received, sent = ([size // columns for size in sizes] for sizes in (self.received, self.sent))
        return calls.all_to_all(self.caller, group, output, tensors[0], received, sent, True)
