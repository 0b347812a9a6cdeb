"""The methods of ProcessGroup that communicate and have overloads, as torch has them; each returns its Work at once.

Ranks are group ranks, and options those of ``call_options``. With ``opts.asyncOp`` False a call has ended on return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, overload

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.errors import UnsupportedError
from shim.frontends.torch._calls.arguments import (
    list_at_root,
    list_of,
    outputs_at_root,
    outputs_of,
    root_of,
    splits_of,
    told,
)
from shim.frontends.torch._calls.devices import check_device, finish_before_barrier
from shim.frontends.torch._calls.reduce_op import AnyReduceOp, reduction_of
from shim.frontends.torch._calls.sparse_tensors import sum_of_sparse
from shim.frontends.torch._calls.work import Work
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._methods.call_options import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    begin_as,
    ends_in_the_call,
)
from shim.frontends.torch._methods.overload_resolution import (
    ALLGATHER,
    ALLREDUCE,
    ALLTOALL_BASE,
    BARRIER,
    BROADCAST,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    read,
)

__all__ = ["OverloadedCollectives"]

_Tensors = Sequence[Tensor]
_Lists = Sequence[Sequence[Tensor]]

_ALLREDUCE = torch_function("ProcessGroup.allreduce", output="tensors", input="tensors")
_BROADCAST = torch_function("ProcessGroup.broadcast", output="tensors", input="tensors", root="rootRank")
_ALLGATHER = torch_function("ProcessGroup.allgather", output="output_tensors", input="input_tensors")
_GATHER = torch_function("ProcessGroup.gather", output="output_tensors", input="input_tensors", root="rootRank")
_SCATTER = torch_function("ProcessGroup.scatter", output="output_tensors", input="input_tensors", root="rootRank")
_REDUCE = torch_function("ProcessGroup.reduce", output="tensors", input="tensors", root="rootRank")
_REDUCE_SCATTER = torch_function("ProcessGroup.reduce_scatter", output="output_tensors", input="input_tensors")
_BARRIER = torch_function("ProcessGroup.barrier")
_ALLTOALL_BASE = torch_function(
    "ProcessGroup.alltoall_base", output_splits="output_split_sizes", input_splits="input_split_sizes"
)
_ALL_TO_ALL_SINGLE = torch_function(
    "ProcessGroup.all_to_all_single", output_splits="output_split_sizes", input_splits="input_split_sizes"
)


class OverloadedCollectives:
    """What the ranks of a ProcessGroup do together; ``core`` is core's group."""

    __slots__ = ()
    core: groups.ProcessGroup
    bound_device_id: Any

    @overload
    def allreduce(self, tensors: _Tensors, opts: AllreduceOptions | None = None) -> Work: ...
    @overload
    def allreduce(self, tensors: _Tensors, op: AnyReduceOp = ..., timeout: timedelta | None = None) -> Work: ...
    @overload
    def allreduce(self, tensor: Tensor, op: AnyReduceOp = ..., timeout: timedelta | None = None) -> Work: ...
    def allreduce(self, *args: Any, **kwargs: Any) -> Work:
        """Combine every rank's tensor, in place; see all_reduce."""
        members = self.core
        tensor, opts = read(_ALLREDUCE, members, ALLREDUCE, args, kwargs)
        op, factor = reduction_of(_ALLREDUCE, members, opts.reduceOp, tensor)
        prepared = calls.all_reduce(
            _ALLREDUCE, members, tensor, tensor, op, factor, ends_in_the_call(opts), sum_of_sparse
        )
        return begin_as(opts, prepared, tensor)

    @overload
    def broadcast(self, tensors: _Tensors, opts: BroadcastOptions | None = None) -> Work: ...
    @overload
    def broadcast(self, tensor: Tensor, root: int, timeout: timedelta | None = None) -> Work: ...
    def broadcast(self, *args: Any, **kwargs: Any) -> Work:
        """Copy the root's tensor into every rank's; see broadcast."""
        members = self.core
        tensor, opts = read(_BROADCAST, members, BROADCAST, args, kwargs)
        _refuse_root_tensor(_BROADCAST, members, opts)
        root = root_of(_BROADCAST, members, None, opts.rootRank)
        return begin_as(opts, calls.broadcast(_BROADCAST, members, tensor, root, ends_in_the_call(opts)), tensor)

    @overload
    def reduce(self, tensors: _Tensors, opts: ReduceOptions | None = None) -> Work: ...
    @overload
    def reduce(self, tensor: Tensor, root: int, op: AnyReduceOp = ..., timeout: timedelta | None = None) -> Work: ...
    def reduce(self, *args: Any, **kwargs: Any) -> Work:
        """Combine every rank's tensor into the root's; see reduce."""
        members = self.core
        tensor, opts = read(_REDUCE, members, REDUCE, args, kwargs)
        _refuse_root_tensor(_REDUCE, members, opts)
        root = root_of(_REDUCE, members, None, opts.rootRank)
        op, factor = reduction_of(_REDUCE, members, opts.reduceOp, tensor)
        return begin_as(
            opts, calls.reduce(_REDUCE, members, tensor, tensor, op, root, factor, ends_in_the_call(opts)), tensor
        )

    @overload
    def allgather(
        self, output_tensors: _Lists, input_tensors: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work: ...
    @overload
    def allgather(self, output_tensors: _Tensors, input_tensor: Tensor, timeout: timedelta | None = None) -> Work: ...
    def allgather(self, *args: Any, **kwargs: Any) -> Work:
        """Copy every rank's tensor into its place in every rank's list; see all_gather."""
        members = self.core
        outputs, tensor, opts = read(_ALLGATHER, members, ALLGATHER, args, kwargs)
        places = outputs_of(_ALLGATHER, members, "output", outputs)
        return begin_as(
            opts, calls.all_gather(_ALLGATHER, members, places, tensor, None, ends_in_the_call(opts)), places
        )

    @overload
    def gather(self, output_tensors: _Lists, input_tensors: _Tensors, opts: GatherOptions | None = None) -> Work: ...
    @overload
    def gather(
        self, output_tensors: _Tensors, input_tensor: Tensor, root: int, timeout: timedelta | None = None
    ) -> Work: ...
    def gather(self, *args: Any, **kwargs: Any) -> Work:
        """Copy every rank's tensor into its place in the root's list, empty elsewhere; see gather."""
        members = self.core
        outputs, tensor, opts = read(_GATHER, members, GATHER, args, kwargs)
        root = root_of(_GATHER, members, None, opts.rootRank)
        places = outputs_at_root(_GATHER, members, "output", outputs, root)
        return begin_as(
            opts, calls.gather(_GATHER, members, places, tensor, root, None, ends_in_the_call(opts)), places or []
        )

    @overload
    def scatter(self, output_tensors: _Tensors, input_tensors: _Lists, opts: ScatterOptions | None = None) -> Work: ...
    @overload
    def scatter(
        self, output_tensor: Tensor, input_tensors: _Tensors, root: int, timeout: timedelta | None = None
    ) -> Work: ...
    def scatter(self, *args: Any, **kwargs: Any) -> Work:
        """Copy each rank's place in the root's list, empty elsewhere, into its tensor; see scatter."""
        members = self.core
        tensor, inputs, opts = read(_SCATTER, members, SCATTER, args, kwargs)
        root = root_of(_SCATTER, members, None, opts.rootRank)
        places = list_at_root(_SCATTER, members, "input", inputs, root)
        return begin_as(
            opts, calls.scatter(_SCATTER, members, tensor, places, root, None, ends_in_the_call(opts)), tensor
        )

    @overload
    def reduce_scatter(
        self, output_tensors: _Tensors, input_tensors: _Lists, opts: ReduceScatterOptions | None = None
    ) -> Work: ...
    @overload
    def reduce_scatter(
        self, output: Tensor, input: _Tensors, op: AnyReduceOp = ..., timeout: timedelta | None = None
    ) -> Work: ...
    def reduce_scatter(self, *args: Any, **kwargs: Any) -> Work:
        """Combine every rank's list and give each rank its place in it; see reduce_scatter."""
        members = self.core
        output, inputs, opts = read(_REDUCE_SCATTER, members, REDUCE_SCATTER, args, kwargs)
        op, factor = reduction_of(_REDUCE_SCATTER, members, opts.reduceOp, output)
        several = list_of(_REDUCE_SCATTER, members, "input", inputs)
        prepared = calls.reduce_scatter(
            _REDUCE_SCATTER, members, output, several, op, factor, None, ends_in_the_call(opts)
        )
        return begin_as(opts, prepared, output)

    @overload
    def barrier(self, opts: BarrierOptions | None = None) -> Work: ...
    @overload
    def barrier(self, timeout: timedelta | None = None) -> Work: ...
    def barrier(self, *args: Any, **kwargs: Any) -> Work:
        """Wait until every rank has called this; see barrier."""
        members = self.core
        (opts,) = read(_BARRIER, members, BARRIER, args, kwargs)
        told(_BARRIER, members, check_device, "device", opts.device)
        on_device = None if str(opts.device).startswith(("None", "cpu")) else opts.device
        finish_before_barrier(_BARRIER, members, opts.device_ids, on_device or self.bound_device_id)
        return begin_as(opts, calls.barrier(_BARRIER, members, ends_in_the_call(opts)), [])

    @overload
    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: AllToAllOptions | None = None,
    ) -> Work: ...
    @overload
    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        timeout: timedelta | None = None,
    ) -> Work: ...
    def alltoall_base(self, *args: Any, **kwargs: Any) -> Work:
        """Send each rank its rows of the input; see all_to_all_single."""
        return _all_to_all_single(_ALLTOALL_BASE, self.core, args, kwargs)

    @overload
    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: AllToAllOptions | None = None,
    ) -> Work: ...
    @overload
    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        timeout: timedelta | None = None,
    ) -> Work: ...
    def all_to_all_single(self, *args: Any, **kwargs: Any) -> Work:
        """Send each rank its rows of the input; see all_to_all_single."""
        return _all_to_all_single(_ALL_TO_ALL_SINGLE, self.core, args, kwargs)


def _all_to_all_single(
    caller: Caller, members: groups.ProcessGroup, arguments: Sequence[Any], named: Mapping[str, Any]
) -> Work:
    output, input, output_splits, input_splits, opts = read(caller, members, ALLTOALL_BASE, arguments, named)
    rows = splits_of(caller, members, "output_splits", output_splits)
    cuts = splits_of(caller, members, "input_splits", input_splits)
    return begin_as(
        opts, calls.all_to_all(caller, members, output, input, rows, cuts, ends_in_the_call(opts), True), output
    )


def _refuse_root_tensor(caller: Caller, members: groups.ProcessGroup, opts: Any) -> None:
    if opts.rootTensor != 0:
        error = UnsupportedError(
            f"rootTensor must be 0: a rank of the torch frontend gives one tensor, got {opts.rootTensor}"
        )
        calls.refuse(caller, members, error)


between_graphs(globals(), __all__)
