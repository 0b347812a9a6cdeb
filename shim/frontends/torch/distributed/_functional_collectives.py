"""``torch.distributed._functional_collectives``: collectives that leave their input alone and return a new tensor.

The result is an ``AsyncCollectiveTensor``, which waits when it is used; in a graph of ``torch.compile`` and under
``torch.func``'s transforms it is a plain tensor. The input may be changed at once. *group* is a ProcessGroup, its name, a DeviceMesh
of one dimension or ``(DeviceMesh, dimension)``; a list of the world's ranks warns (FutureWarning).
Gradients are those of the sum of all ranks' losses, for every reduce op; every rank of the group has to run backward.
Tensors of other frameworks get a plain result, without gradients.
Deviates: *tag* must be empty, where torch ignores it; views of a result wait for it too; ``torch.func.grad`` and ``vjp`` work; torch raises
RuntimeError. A graph of ``torch.compile`` does not contain sends, receives and the body of an activation checkpoint.
See: https://docs.pytorch.org/docs/2.15/distributed.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends import _releases
from shim.frontends.torch._calls.deprecations import deprecated
from shim.frontends.torch._calls.reduce_op import AnyReduceOp
from shim.frontends.torch._functional import aliased, differentiable, waiting
from shim.frontends.torch._functional.arguments import check_member_rank, op_of, permuted_splits
from shim.frontends.torch._functional.differentiable import begin_call
from shim.frontends.torch._functional.errors import functional_caller
from shim.frontends.torch._functional.groups import core_group
from shim.frontends.torch.distributed._functional_waiting import *  # noqa: F403  # what it lists
from shim.frontends.torch.distributed._functional_waiting import __all__ as _waiting_names
from shim.frontends.torch.distributed._inplace_collectives import *  # noqa: F403
from shim.frontends.torch.distributed._inplace_collectives import __all__ as _names

__all__ = [
    *_names,
    *_waiting_names,
    "AsyncCollectiveTensor",
    "all_gather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_autograd",
    "all_gather_single_coalesced",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_single",
    "reduce_scatter_single_autograd",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced",
]


def _on_self(name: str, **parameters: str) -> Caller:
    """Return the Caller of the function *name* here, whose input is *self*; errors about its result name that too."""
    return functional_caller(f"_functional_collectives.{name}", output="self", input="self", **parameters)


_BROADCAST = _on_self("broadcast", root="src")
_ALL_REDUCE = _on_self("all_reduce", op="reduceOp")
_ALL_GATHER_SINGLE = _on_self("all_gather_single")
_ALL_GATHER_SINGLE_AUTOGRAD = _on_self("all_gather_single_autograd")
_REDUCE_SCATTER_SINGLE = _on_self("reduce_scatter_single", op="reduceOp")
_REDUCE_SCATTER_SINGLE_AUTOGRAD = _on_self("reduce_scatter_single_autograd", op="reduceOp")
_ALL_GATHER_TENSOR = _on_self("all_gather_tensor")
_ALL_GATHER_TENSOR_AUTOGRAD = _on_self("all_gather_tensor_autograd")
_REDUCE_SCATTER_TENSOR = _on_self("reduce_scatter_tensor", op="reduceOp")
_REDUCE_SCATTER_TENSOR_AUTOGRAD = _on_self("reduce_scatter_tensor_autograd", op="reduceOp")
_ALL_REDUCE_COALESCED = _on_self("all_reduce_coalesced", op="reduceOp")
_ALL_GATHER_SINGLE_COALESCED = _on_self("all_gather_single_coalesced")
_REDUCE_SCATTER_SINGLE_COALESCED = functional_caller(
    "_functional_collectives.reduce_scatter_single_coalesced", output="inputs", input="inputs", op="reduceOp"
)
_ALL_GATHER_INTO_TENSOR_COALESCED = _on_self("all_gather_into_tensor_coalesced")
_REDUCE_SCATTER_TENSOR_COALESCED = functional_caller(
    "_functional_collectives.reduce_scatter_tensor_coalesced", output="inputs", input="inputs", op="reduceOp"
)
_ALL_TO_ALL_SINGLE = _on_self("all_to_all_single", output_splits="output_split_sizes", input_splits="input_split_sizes")
_ALL_TO_ALL_SINGLE_AUTOGRAD = _on_self(
    "all_to_all_single_autograd", output_splits="output_split_sizes", input_splits="input_split_sizes"
)
_PERMUTE_TENSOR = _on_self("permute_tensor")

_Op = AnyReduceOp | str
_Group = Any  # ProcessGroup, str, DeviceMesh, (DeviceMesh, int), or a list of ranks

AsyncCollectiveTensor: type[Any]  # found by __getattr__: its base class is torch's Tensor

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Return ``AsyncCollectiveTensor``, which needs torch."""
        return waiting.async_class(__name__, name)


def broadcast(self: Tensor, src: int, group: _Group, tag: str = "") -> Any:
    """Return a copy of *self* of *group*'s rank *src*, which gets the sum of all gradients; every rank's *self* has its shape.

    Raises: ValueError for a *src* outside *group*.
    Deviates: torch 2.13 passes the gradient through unchanged on every rank, with a warning.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_call(_BROADCAST, core_group(_BROADCAST, group, tag), [self], in_background=True)
    return differentiable.broadcast(call, self, check_member_rank(call, src))


def all_reduce(self: Tensor, reduceOp: _Op, group: _Group, tag: str = "") -> Any:
    """Return every rank's *self*, all of one shape, combined by *reduceOp*: a ReduceOp, or its name in letters of any case.

    Raises: RuntimeError for another *reduceOp*; ValueError for what is no *group*.
    Deviates: every op has a gradient; torch 2.13 raises RuntimeError in backward for all but sum.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_call(_ALL_REDUCE, core_group(_ALL_REDUCE, group, tag), [self], in_background=True)
    return differentiable.all_reduce(call, self, *op_of(call, reduceOp, self))


def all_gather_single(self: Tensor, gather_dim: int, group: _Group, tag: str = "") -> Any:
    """Return every rank's *self*, all of one shape, one after the other along *gather_dim*; unless that is 0, the result is a plain tensor.

    Raises: IndexError for a *gather_dim* that *self* has not.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_gather(_ALL_GATHER_SINGLE, self, gather_dim, group, tag)


def all_gather_single_autograd(self: Tensor, gather_dim: int, group: _Group, tag: str = "") -> Any:
    """Do what ``all_gather_single`` does with *self*, *gather_dim* and *group*, gradients included; torch has both names.

    Raises: IndexError for a *gather_dim* that *self* has not.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_gather(_ALL_GATHER_SINGLE_AUTOGRAD, self, gather_dim, group, tag)


def reduce_scatter_single(self: Tensor, reduceOp: _Op, scatter_dim: int, group: _Group, tag: str = "") -> Any:
    """Return this rank's equal part, along *scatter_dim*, of every rank's *self*, all of one shape, combined by *reduceOp*.

    Raises: AssertionError for a *scatter_dim* that cannot be cut equally; RuntimeError for an unknown *reduceOp*.
    Deviates: every op has a gradient; torch 2.13 raises RuntimeError in backward for all but sum.
    Deviates: *reduceOp* may be a ReduceOp too, for which torch 2.15 raises AttributeError here and where several are scattered.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.reduce_scatter(_REDUCE_SCATTER_SINGLE, self, reduceOp, scatter_dim, group, tag)


def reduce_scatter_single_autograd(self: Tensor, reduceOp: _Op, scatter_dim: int, group: _Group, tag: str = "") -> Any:
    """Do what ``reduce_scatter_single`` does with *self*, *reduceOp*, *scatter_dim* and *group*; torch has both names.

    Raises: AssertionError for a *scatter_dim* that cannot be cut equally; RuntimeError for an unknown *reduceOp*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.reduce_scatter(_REDUCE_SCATTER_SINGLE_AUTOGRAD, self, reduceOp, scatter_dim, group, tag)


def all_gather_tensor(self: Tensor, gather_dim: int, group: _Group, tag: str = "") -> Any:
    """Do what ``all_gather_single`` does with *self*, *gather_dim* and *group*.

    Raises: IndexError for a *gather_dim* that *self* has not; warns (FutureWarning) of its new name.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_gather(
        deprecated(_ALL_GATHER_TENSOR, "_functional_collectives.all_gather_single"), self, gather_dim, group, tag
    )


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: _Group, tag: str = "") -> Any:
    """Do what ``all_gather_single_autograd`` does with *self*, *gather_dim* and *group*.

    Raises: IndexError for a *gather_dim* that *self* has not; warns (FutureWarning) of its new name.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_gather(
        deprecated(_ALL_GATHER_TENSOR_AUTOGRAD, "_functional_collectives.all_gather_single_autograd"),
        self,
        gather_dim,
        group,
        tag,
    )


def reduce_scatter_tensor(self: Tensor, reduceOp: _Op, scatter_dim: int, group: _Group, tag: str = "") -> Any:
    """Do what ``reduce_scatter_single`` does with *self*, *reduceOp*, *scatter_dim* and *group*.

    Raises: AssertionError for a *scatter_dim* that cannot be cut equally; warns (FutureWarning) of its new name.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.reduce_scatter(
        deprecated(_REDUCE_SCATTER_TENSOR, "_functional_collectives.reduce_scatter_single"),
        self,
        reduceOp,
        scatter_dim,
        group,
        tag,
    )


def reduce_scatter_tensor_autograd(self: Tensor, reduceOp: _Op, scatter_dim: int, group: _Group, tag: str = "") -> Any:
    """Do what ``reduce_scatter_single_autograd`` does with *self*, *reduceOp*, *scatter_dim* and *group*.

    Raises: AssertionError for a *scatter_dim* that cannot be cut equally; warns (FutureWarning) of its new name.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.reduce_scatter(
        deprecated(_REDUCE_SCATTER_TENSOR_AUTOGRAD, "_functional_collectives.reduce_scatter_single_autograd"),
        self,
        reduceOp,
        scatter_dim,
        group,
        tag,
    )


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: _Op, group: _Group, tag: str = "") -> list[Any]:
    """Return for each tensor of *self* all ranks' combined by *reduceOp*; shapes are the same on every rank.

    Raises: RuntimeError for an unknown *reduceOp*; TypeError when *self* is no list of tensors.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_reduce_coalesced(_ALL_REDUCE_COALESCED, self, reduceOp, group, tag)


def all_gather_single_coalesced(self: Sequence[Tensor], group: _Group, tag: str = "") -> list[Any]:
    """Return for each tensor of *self*, of shape (m, ...), those of all n ranks one after the other, of shape (n * m, ...).

    Raises: TypeError when *self* is no list of tensors.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_gather_coalesced(_ALL_GATHER_SINGLE_COALESCED, self, group, tag)


def reduce_scatter_single_coalesced(
    inputs: Sequence[Tensor], reduceOp: _Op, scatter_dim: Sequence[int], group: _Group, tag: str = ""
) -> list[Any]:
    """Return for each of *inputs* this rank's equal part, along its *scatter_dim*, of all ranks' combined by *reduceOp*.

    Shapes are the same on every rank.
    Raises: AssertionError for another number of *scatter_dim*, or one that cannot be cut equally.
    Deviates: torch 2.13 replaces elements of the list *inputs* when a *scatter_dim* is not 0.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.reduce_scatter_coalesced(_REDUCE_SCATTER_SINGLE_COALESCED, inputs, reduceOp, scatter_dim, group, tag)


def all_gather_into_tensor_coalesced(self: Sequence[Tensor], group: _Group, tag: str = "") -> list[Any]:
    """Do what ``all_gather_single_coalesced`` does with *self* and *group*.

    Raises: TypeError when *self* is no list of tensors; warns (FutureWarning) of its new name.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_gather_coalesced(
        deprecated(_ALL_GATHER_INTO_TENSOR_COALESCED, "_functional_collectives.all_gather_single_coalesced"),
        self,
        group,
        tag,
    )


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor], reduceOp: _Op, scatter_dim: Sequence[int], group: _Group, tag: str = ""
) -> list[Any]:
    """Do what ``reduce_scatter_single_coalesced`` does with *inputs*, *reduceOp*, *scatter_dim* and *group*.

    Raises: AssertionError as that does; warns (FutureWarning) of its new name.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.reduce_scatter_coalesced(
        deprecated(_REDUCE_SCATTER_TENSOR_COALESCED, "_functional_collectives.reduce_scatter_single_coalesced"),
        inputs,
        reduceOp,
        scatter_dim,
        group,
        tag,
    )


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: _Group,
    tag: str = "",
) -> Any:
    """Send each rank its rows of *self* and return those that come.

    *output_split_sizes* and *input_split_sizes* are the rows of each rank's part; None for both means equal parts.
    Raises: AssertionError when one is None alone or not of integers; ValueError for sizes that do not add up.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_to_all(_ALL_TO_ALL_SINGLE, self, output_split_sizes, input_split_sizes, group, tag)


def all_to_all_single_autograd(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: _Group,
    tag: str = "",
) -> Any:
    """Do what ``all_to_all_single`` does with *self*, *output_split_sizes*, *input_split_sizes* and *group*.

    Raises: AssertionError when one is None alone or not of integers; ValueError for sizes that do not add up.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return aliased.all_to_all(_ALL_TO_ALL_SINGLE_AUTOGRAD, self, output_split_sizes, input_split_sizes, group, tag)


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: _Group, tag: str = "") -> Any:
    """Send *self* from each *group* rank *m* to rank ``src_dst[m]`` and return what comes, one after the other.

    Raises: ValueError unless *src_dst* names a rank of *group* for each.
    Deviates: takes tensors of any shape, and a group's name; torch 2.13 takes one-dimensional tensors only, and no name.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    call = begin_call(_PERMUTE_TENSOR, core_group(_PERMUTE_TENSOR, group, tag), [self], in_background=True)
    rows: Any = self
    rows = rows if len(rows.shape) else rows.reshape(1)  # one without dimensions travels as one of one element
    return differentiable.all_to_all(call, rows, *permuted_splits(call, rows, src_dst))


_releases.follow(globals())
