"""The functional collectives that write into the caller's tensors, at torch's signatures.

They stand for the collectives of ``torch.distributed`` in programs that torch compiles; called as they are, gradients go through
what they write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from shim.core.engines.base import Tensor
from shim.frontends.torch._calls.reduce_op import AnyReduceOp
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._functional import differentiable
from shim.frontends.torch._functional.aliased import gathered, reduce_scattered
from shim.frontends.torch._functional.arguments import check_same_shape, op_of, resized, splits_of
from shim.frontends.torch._functional.errors import functional_caller
from shim.frontends.torch._functional.written_tensors import (
    all_gather_list,
    batch,
    begin_pairwise,
    begin_synchronous,
    begun,
    copied,
    receiving,
    reduce_scatter_list,
    sending,
)

__all__ = [
    "all_gather_inplace",
    "all_gather_tensor_inplace",
    "all_reduce_inplace",
    "all_to_all_inplace",
    "batch_p2p_ops_inplace",
    "irecv_inplace",
    "isend_inplace",
    "reduce_scatter_inplace",
    "reduce_scatter_tensor_inplace",
]

_ALL_GATHER_TENSOR_INPLACE = functional_caller(
    "_functional_collectives.all_gather_tensor_inplace", output="output_tensor", input="input_tensor"
)
_REDUCE_SCATTER_TENSOR_INPLACE = functional_caller("_functional_collectives.reduce_scatter_tensor_inplace", op="op")
_ALL_REDUCE_INPLACE = functional_caller("_functional_collectives.all_reduce_inplace", output="tensor", input="tensor")
_ALL_TO_ALL_INPLACE = functional_caller(
    "_functional_collectives.all_to_all_inplace", output_splits="output_split_sizes", input_splits="input_split_sizes"
)
_ALL_GATHER_INPLACE = functional_caller(
    "_functional_collectives.all_gather_inplace", output="tensor_list", input="tensor"
)
_REDUCE_SCATTER_INPLACE = functional_caller("_functional_collectives.reduce_scatter_inplace", input="input_list")
_ISEND_INPLACE = functional_caller("_functional_collectives.isend_inplace", input="tensor", root="dst", peer="dst")
_IRECV_INPLACE = functional_caller(
    "_functional_collectives.irecv_inplace", input="tensor", output="tensor", root="src", peer="src"
)
_BATCH_P2P_OPS_INPLACE = functional_caller(
    "_functional_collectives.batch_p2p_ops_inplace",
    input="tensors",
    output="tensors",
    root="peer_list",
    peer="peer_list",
    group="group_name",
)

_Op = AnyReduceOp | str
_Group = Any  # None for the world, ProcessGroup, str, DeviceMesh, (DeviceMesh, int), or a list of ranks


def all_gather_tensor_inplace(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: _Group = None,
    async_op: bool = False,
    tag: str = "",
    gather_dim: int = 0,
) -> Any:
    """Write all n ranks' *input_tensor* into *output_tensor*, n times as long along *gather_dim*, and return that; gradients go through.

    Raises: AssertionError for *async_op*, and before initialisation; ValueError for another shape.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_synchronous(_ALL_GATHER_TENSOR_INPLACE, [input_tensor, output_tensor], group, async_op, tag)
    check_same_shape(call, output_tensor, resized(call, "gather_dim", input_tensor, gather_dim, True))
    return copied(output_tensor, gathered(call, input_tensor, gather_dim))


def reduce_scatter_tensor_inplace(
    output: Tensor,
    input: Tensor,
    op: _Op = "sum",
    group: _Group = None,
    async_op: bool = False,
    scatter_dim: int = 0,
    tag: str = "",
) -> Any:
    """Write this rank's part, along *scatter_dim*, of every rank's *input* combined by *op* into *output* and return that.

    Raises: AssertionError for *async_op*, and before initialisation; ValueError for another shape.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_synchronous(_REDUCE_SCATTER_TENSOR_INPLACE, [input, output], group, async_op, tag)
    check_same_shape(call, output, resized(call, "scatter_dim", input, scatter_dim, False))
    return copied(output, reduce_scattered(call, input, op, scatter_dim))


def all_reduce_inplace(
    tensor: Tensor, op: _Op = "sum", group: _Group = None, async_op: bool = False, tag: str = ""
) -> Any:
    """Combine every rank's *tensor*, all of one shape, by *op* in place and return it; gradients go through.

    Raises: AssertionError for *async_op*, and before initialisation; RuntimeError for an unknown *op*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_synchronous(_ALL_REDUCE_INPLACE, [tensor], group, async_op, tag)
    return copied(tensor, differentiable.all_reduce(call, tensor, *op_of(call, op, tensor)))


def all_to_all_inplace(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: _Group = None,
    async_op: bool = False,
    tag: str = "",
) -> Any:
    """Send each rank its rows of *input*, write those that come into *output* and return that; gradients go through.

    *output_split_sizes* and *input_split_sizes* are the rows of each rank's part; None for both means equal parts.
    Raises: AssertionError for *async_op*, before initialisation, and for one list of split sizes alone.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_synchronous(_ALL_TO_ALL_INPLACE, [input, output], group, async_op, tag)
    rows, into, cuts = splits_of(call, input, output_split_sizes, input_split_sizes)
    check_same_shape(call, output, (rows, *cast(Any, input).shape[1:]))
    return copied(output, differentiable.all_to_all(call, input, rows, into, cuts))


def all_gather_inplace(
    tensor_list: list[Any], tensor: Tensor, group: _Group = None, async_op: bool = False, tag: str = ""
) -> list[Any]:
    """Write every rank's *tensor* into its place in *tensor_list* and return that; gradients go through.

    Raises: AssertionError for *async_op*, before initialisation, and for tensors of another shape.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_synchronous(_ALL_GATHER_INPLACE, [tensor], group, async_op, tag)
    return all_gather_list(call, tensor_list, tensor)


def reduce_scatter_inplace(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: _Op = "sum",
    group: _Group = None,
    async_op: bool = False,
    tag: str = "",
) -> Any:
    """Write all ranks' tensor for this one in *input_list*, combined by *op*, into *output*, all of one shape, and return that.

    Gradients go through. Raises: AssertionError for *async_op*, before initialisation, and for tensors of another shape.
    Deviates: another number of tensors than ranks raises ValueError; torch 2.15 scatters them joined, as if cut elsewhere.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_synchronous(_REDUCE_SCATTER_INPLACE, [output], group, async_op, tag)
    return reduce_scatter_list(call, output, input_list, op)


def isend_inplace(
    tensor: Tensor, dst: int | None = None, tag: int = 0, group: _Group = None, group_dst: int = -1
) -> Any:
    """Send *tensor* to the world's rank *dst*, or *group*'s *group_dst*; return an empty tensor that waits for the sending.

    The receiver's tensor has as many elements.
    Raises: ValueError for two ranks, or none; AssertionError before initialisation.
    Deviates: *dst* is the world's rank in subgroups too, where torch 2.13 hangs or fails.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_pairwise(_ISEND_INPLACE, [tensor], group)
    return begun(*sending(call, tensor, dst, tag, group_dst))


def irecv_inplace(
    tensor: Tensor, src: int | None = None, tag: int = 0, group: _Group = None, group_src: int = -1
) -> Any:
    """Receive into *tensor* as many elements as it has from the world's rank *src*, or *group*'s *group_src*; return what waits for it.

    Raises: ValueError for two ranks, or none; AssertionError before initialisation.
    Deviates: *src* is the world's rank in subgroups too, where torch 2.13 hangs or fails.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_pairwise(_IRECV_INPLACE, [tensor], group)
    return begun(*receiving(call, tensor, src, tag, group_src))


def batch_p2p_ops_inplace(
    op_list: Sequence[str],
    peer_list: Sequence[int],
    tag_list: Sequence[int],
    tensors: Sequence[Tensor],
    group_name: _Group,
) -> list[Any]:
    """Start the "isend" and "irecv" of *op_list* with the world's ranks of *peer_list*; return a waiting tensor for each.

    *group_name* is a group, or its name. A tensor has as many elements as the peer's.
    Raises: ValueError for another op; AssertionError for unequal lengths of *tag_list* and *tensors*, and before initialisation.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return batch(_BATCH_P2P_OPS_INPLACE, op_list, peer_list, tag_list, tensors, group_name)


between_graphs(globals(), ["batch_p2p_ops_inplace", "irecv_inplace", "isend_inplace"])
