"""AlltoAll, whose parts lie along any dimension."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import dtype_name, framework_of
from shim.core.work import Work
from shim.errors import ArgumentError
from shim.frontends.mindspore._groups.group_names import GlobalComm
from shim.frontends.mindspore._primitives.argument_checks import integer
from shim.frontends.mindspore._primitives.primitive import PartsPrimitive, Shape


class AlltoAll(PartsPrimitive):
    """Send block j of the tensor, cut along *split_dim*, to rank j of *group*, and concatenate what comes along *concat_dim*.

    *split_count* is the number of blocks: one for each rank.
    Raises: TypeError if an argument has another type; ValueError if *split_count* is not the number of ranks, a dimension is not
    there, or cannot be cut into so many blocks.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/ops/mindspore.ops.AlltoAll.html
    """

    caller = Caller("mindspore.ops.AlltoAll", output="input_x", input="input_x")

    split_count: int
    split_dim: int
    concat_dim: int

    def __init__(
        self, split_count: int, split_dim: int, concat_dim: int, group: str = GlobalComm.WORLD_COMM_GROUP
    ) -> None:
        given = {"split_count": split_count, "split_dim": split_dim, "concat_dim": concat_dim}
        for name, value in given.items():
            integer(self.caller, name, value)
        self.set_up(group, {**given, "group": group})
        for name, value in given.items():
            self.add_prim_attr(name, value)

    def output_shape(self, *shapes: Shape) -> Shape:
        shape, blocks = list(shapes[0]), self.split_count
        if blocks != self.ranks_now():
            raise ArgumentError(f"split_count must be {self.ranks_now()}, the number of ranks, got {blocks}")
        split, concat = (_dimension(shapes[0], name, getattr(self, name)) for name in ("split_dim", "concat_dim"))
        if shape[split] % blocks:
            raise ArgumentError(
                f"{{input}} must have rows for {blocks} blocks in dimension {split}, got shape {shapes[0]}"
            )
        shape[split] //= blocks
        shape[concat] *= blocks
        return tuple(shape)

    def forward(self, *tensors: Any) -> Any:
        if framework_of(type(tensors[0])) == "mindspore" and dtype_name(tensors[0]).startswith("float8"):
            in_bytes = tensors[0].view(sys.modules["mindspore"].uint8)  # NumPy has no float8
            return super().forward(in_bytes).view(tensors[0].dtype)
        return super().forward(*tensors)

    def _communicate(self, group: ProcessGroup, output: Any, *tensors: Any) -> Work:
        received = _blocks(output, self.concat_dim, group.size)
        return calls.all_to_all(self.caller, group, received, _blocks(tensors[0], self.split_dim, group.size), now=True)

    def get_bprop(self) -> Callable[..., Any]:
        """Return the gradient: the blocks go back, cut along *concat_dim* and concatenated along *split_dim*."""
        back = self.adjoint(
            AlltoAll, split_count=self.split_count, split_dim=self.concat_dim, concat_dim=self.split_dim
        )
        depend = sys.modules["mindspore"].ops.Depend()

        def _gradient(_input: Any, output: Any, dout: Any) -> tuple[Any, ...]:
            return (back(depend(dout, output)),)

        return _gradient


def _dimension(shape: Shape, name: str, dimension: int) -> int:
    """Return *dimension* as a number of at least 0."""
    if not -len(shape) <= dimension < len(shape):
        raise ArgumentError(f"{name} must be a dimension of {{input}}, which has shape {shape}, got {dimension}")
    return dimension % len(shape)


def _blocks(tensor: Any, dimension: int, count: int) -> list[Any]:
    """Return views of *tensor*'s *count* equal blocks along *dimension*."""
    before, rows = (slice(None),) * (dimension % len(tensor.shape)), tensor.shape[dimension] // count
    places = [(*before, slice(block * rows, (block + 1) * rows)) for block in range(count)]
    return [tensor[place] for place in places]
