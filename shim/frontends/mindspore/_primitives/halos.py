"""NeighborExchangeV2: the borders of images that are laid out over ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from shim.core.callers import Caller
from shim.core.tensors import new_like
from shim.errors import ArgumentError, ShimError, UnsupportedError
from shim.frontends.mindspore._groups import group_names
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import integers
from shim.frontends.mindspore._primitives.neighbors import exchange
from shim.frontends.mindspore._primitives.primitive import PartsPrimitive, Shape
from shim.frontends.mindspore._tensors import shape_of

# Of H and W: from the top clockwise, as MindSpore numbers them.
_DIRECTIONS = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))

_Lengths = tuple[int, ...]  # top, bottom, left, right


class _BorderPrimitive(PartsPrimitive):
    """What NeighborExchangeV2 and its gradient share. Borders are a tensor's own rows, or those around it."""

    caller = Caller("mindspore.ops.NeighborExchangeV2", input="input_x")
    is_collective = False

    send_rank_ids: tuple[int, ...]
    send_lens: _Lengths
    recv_rank_ids: tuple[int, ...]
    recv_lens: _Lengths

    def begin_with(self, group: str, arguments: dict[str, Any]) -> None:
        """Become the primitive for *arguments*, which are attributes too."""
        self.set_up(group, {**arguments, "group": group})
        for name, value in arguments.items():
            self.add_prim_attr(name, value)

    def on_slices(self, *tensors: Any) -> Any:
        try:
            shape = self.output_shape(shape_of(tensors[0]))
        except ShimError as error:
            self.refuse(error)
        return self.exchanged(tensors[0], new_like(tensors[0], shape))

    def exchanged(self, tensor: Any, output: Any) -> Any:
        """Return *output*, filled."""
        raise NotImplementedError

    def carry_out(self, to: Sequence[int], sent: Sequence[Any], of: Sequence[int], received: Sequence[Any]) -> None:
        """Send and receive what is not empty; a rank of -1 stands for none."""
        group = group_names.known_group(self.caller, self.group)
        out = [(peer, part) for peer, part in zip(to, sent, strict=True) if peer >= 0 and 0 not in part.shape]
        into = [(peer, part) for peer, part in zip(of, received, strict=True) if peer >= 0 and 0 not in part.shape]
        exchange(self.caller, group, *_unzipped(out), *_unzipped(into)).wait()


class NeighborExchangeV2(_BorderPrimitive):
    """Surround the tensor (N, C, H, W) with rows and columns of its neighbours', and send them its own.

    *send_rank_ids* and *recv_rank_ids* are ranks of *group*, or -1 for none, for eight directions, from the top clockwise: top,
    top right, right, bottom right, bottom, bottom left, left, top left. *send_lens* and *recv_lens* are numbers of rows or columns at the top,
    bottom, left and right. Returned is a tensor (N, C, top + H + bottom, left + W + right), which is 0 where nothing is received.
    Raises: TypeError if *group* is no str, or ranks or lengths are no lists; ValueError for ranks that are below -1 or occur twice,
    negative lengths, and a *data_format* that is not "NCHW".
    Deviates: works in PyNative mode too.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.NeighborExchangeV2.html
    """

    data_format: str

    def __init__(
        self,
        send_rank_ids: Sequence[int],
        send_lens: Sequence[int],
        recv_rank_ids: Sequence[int],
        recv_lens: Sequence[int],
        data_format: str,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        arguments: dict[str, Any] = {
            "send_rank_ids": _ranks(self.caller, "send_rank_ids", send_rank_ids),
            "send_lens": integers(self.caller, "send_lens", send_lens, count=4),
            "recv_rank_ids": _ranks(self.caller, "recv_rank_ids", recv_rank_ids),
            "recv_lens": integers(self.caller, "recv_lens", recv_lens, count=4),
        }
        if group_names.string(self.caller, "data_format", data_format) != "NCHW":
            raise self.caller.explain(ArgumentError(f"data_format must be 'NCHW', got {data_format!r}"))
        self.begin_with(group, {**arguments, "data_format": data_format})

    def output_shape(self, *shapes: Shape) -> Shape:
        _check_image(shapes[0], self.send_lens)
        top, bottom, left, right = self.recv_lens
        return (*shapes[0][:2], top + shapes[0][2] + bottom, left + shapes[0][3] + right)

    def exchanged(self, tensor: Any, output: Any) -> Any:
        output[:] = 0
        output[_inside(tensor.shape, self.recv_lens)] = tensor
        sent = [tensor[place] for place in _own(tensor.shape, self.send_lens)]
        around = [output[place] for place in _around(tensor.shape, self.recv_lens)]
        self.carry_out(self.send_rank_ids, sent, self.recv_rank_ids, around)
        return output

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: that of the neighbours' rows goes back to them, and is added to that of the rows sent."""
        names = ("send_rank_ids", "send_lens", "recv_rank_ids", "recv_lens")
        back = self.adjoint(_BorderGradient, **{name: getattr(self, name) for name in names})
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(_input: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (back(depend(dout, output)),)

        return _gradient


class _BorderGradient(_BorderPrimitive):
    """Take off what NeighborExchangeV2 has put around a tensor, send it back, and add what comes back."""

    caller = Caller("mindspore.ops.NeighborExchangeV2 (gradient)", input="dout")
    inputs = ("dout",)

    def __init__(
        self,
        send_rank_ids: tuple[int, ...],
        send_lens: _Lengths,
        recv_rank_ids: tuple[int, ...],
        recv_lens: _Lengths,
        group: str,
    ) -> None:
        ranks = {"send_rank_ids": send_rank_ids, "recv_rank_ids": recv_rank_ids}
        self.begin_with(group, {**ranks, "send_lens": send_lens, "recv_lens": recv_lens})

    def output_shape(self, *shapes: Shape) -> Shape:
        top, bottom, left, right = self.recv_lens
        return (*shapes[0][:2], shapes[0][2] - top - bottom, shapes[0][3] - left - right)

    def exchanged(self, tensor: Any, output: Any) -> Any:
        output[:] = tensor[_inside(output.shape, self.recv_lens)]
        own = _own(output.shape, self.send_lens)
        returned = [new_like(output, output[place].shape) for place in own]
        around = [tensor[place] for place in _around(output.shape, self.recv_lens)]
        self.carry_out(self.recv_rank_ids, around, self.send_rank_ids, returned)
        for peer, place, part in zip(self.send_rank_ids, own, returned, strict=True):
            if peer >= 0:
                output[place] += part
        return output

    def get_bprop(self) -> Callable[..., Any]:
        raise self.caller.explain(UnsupportedError("has no gradient of its own"))


def _ranks(caller: Caller, parameter: str, given: Any) -> tuple[int, ...]:
    ranks = integers(caller, parameter, given, least=-1, count=8)
    named = [rank for rank in ranks if rank >= 0]
    if len(set(named)) != len(named):
        raise caller.explain(ArgumentError(f"{parameter} must not have a rank twice, got {list(ranks)}"))
    return ranks


def _check_image(shape: Shape, lens: _Lengths) -> None:
    if len(shape) != 4:
        raise ArgumentError(f"{{input}} must have four dimensions, got shape {shape}")
    if max(lens[:2]) > shape[2] or max(lens[2:]) > shape[3]:
        raise ArgumentError(f"send_lens must not be more than {{input}} of shape {shape} has, got {list(lens)}")


def _inside(shape: Shape, lens: _Lengths) -> tuple[slice, ...]:
    """Return where a tensor of *shape* lies in the one with *lens* around it."""
    return (slice(None), slice(None), slice(lens[0], lens[0] + shape[2]), slice(lens[2], lens[2] + shape[3]))


def _own(shape: Shape, lens: _Lengths) -> list[tuple[slice, ...]]:
    """Return where a tensor of *shape* has its own borders, for each direction."""

    def part(side: int, size: int, before: int, after: int) -> slice:
        return (slice(0, size), slice(size - after, size), slice(0, before))[side]

    return _places(shape, lens, part)


def _around(shape: Shape, lens: _Lengths) -> list[tuple[slice, ...]]:
    """Return where the borders around a tensor of *shape* are in the one that has them, for each direction."""

    def part(side: int, size: int, before: int, after: int) -> slice:
        inner = before + size
        return (slice(before, inner), slice(inner, inner + after), slice(0, before))[side]

    return _places(shape, lens, part)


def _places(shape: Shape, lens: _Lengths, part: Callable[[int, int, int, int], slice]) -> list[tuple[slice, ...]]:
    top, bottom, left, right = lens
    rows_and_columns = [(part(y, shape[2], top, bottom), part(x, shape[3], left, right)) for y, x in _DIRECTIONS]
    return [(slice(None), slice(None), *both) for both in rows_and_columns]


def _unzipped(pairs: list[tuple[int, Any]]) -> tuple[list[int], list[Any]]:
    return [peer for peer, _ in pairs], [part for _, part in pairs]
