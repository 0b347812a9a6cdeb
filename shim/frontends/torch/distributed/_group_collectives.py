"""The methods of ProcessGroup that communicate, with torch's overloads; each returns its Work at once.

Ranks are group ranks, and options those of ``_call_options``. With ``opts.asyncOp`` False a call has ended on return.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

from shim.core import groups
from shim.core.engines.base import Tensor
from shim.frontends.torch.distributed._tracing import between_graphs
from shim.frontends.torch.distributed._work import Work

if TYPE_CHECKING:
    from shim.frontends.torch.distributed import _group_calls as _calls
    from shim.frontends.torch.distributed._call_options import (
        AllgatherOptions,
        AllreduceCoalescedOptions,
        AllreduceOptions,
        AllToAllOptions,
        BarrierOptions,
        BroadcastOptions,
        GatherOptions,
        ReduceOptions,
        ReduceScatterOptions,
        ScatterOptions,
    )

__all__ = ["GroupCollectives"]

_Tensors = Sequence[Tensor]
_Lists = Sequence[Sequence[Tensor]]


if not TYPE_CHECKING:

    class _OnFirstUse:
        """Takes the place of the module that carries the methods out, which needs the groups, which need the class below."""

        def __getattr__(self, name: str) -> Any:
            global _calls
            _calls = importlib.import_module("shim.frontends.torch.distributed._group_calls")
            return getattr(_calls, name)

    _calls = _OnFirstUse()


class GroupCollectives:
    """What the ranks of a ProcessGroup do together; ``core`` is core's group."""

    __slots__ = ()
    core: groups.ProcessGroup

    @overload
    def allreduce(self, tensors: _Tensors, opts: AllreduceOptions | None = None) -> Work: ...
    @overload
    def allreduce(self, tensors: _Tensors, op: Any = ..., timeout: timedelta | None = None) -> Work: ...
    @overload
    def allreduce(self, tensor: Tensor, op: Any = ..., timeout: timedelta | None = None) -> Work: ...
    def allreduce(self, *args: Any, **kwargs: Any) -> Work:
        """Combine every rank's tensor, in place; see all_reduce."""
        return _calls.allreduce(self, args, kwargs)

    @overload
    def broadcast(self, tensors: _Tensors, opts: BroadcastOptions | None = None) -> Work: ...
    @overload
    def broadcast(self, tensor: Tensor, root: int, timeout: timedelta | None = None) -> Work: ...
    def broadcast(self, *args: Any, **kwargs: Any) -> Work:
        """Copy the root's tensor into every rank's; see broadcast."""
        return _calls.broadcast(self, args, kwargs)

    @overload
    def reduce(self, tensors: _Tensors, opts: ReduceOptions | None = None) -> Work: ...
    @overload
    def reduce(self, tensor: Tensor, root: int, op: Any = ..., timeout: timedelta | None = None) -> Work: ...
    def reduce(self, *args: Any, **kwargs: Any) -> Work:
        """Combine every rank's tensor into the root's; see reduce."""
        return _calls.reduce(self, args, kwargs)

    @overload
    def allgather(
        self, output_tensors: _Lists, input_tensors: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work: ...
    @overload
    def allgather(self, output_tensors: _Tensors, input_tensor: Tensor, timeout: timedelta | None = None) -> Work: ...
    def allgather(self, *args: Any, **kwargs: Any) -> Work:
        """Copy every rank's tensor into its place in every rank's list; see all_gather."""
        return _calls.allgather(self, args, kwargs)

    @overload
    def gather(self, output_tensors: _Lists, input_tensors: _Tensors, opts: GatherOptions | None = None) -> Work: ...
    @overload
    def gather(
        self, output_tensors: _Tensors, input_tensor: Tensor, root: int, timeout: timedelta | None = None
    ) -> Work: ...
    def gather(self, *args: Any, **kwargs: Any) -> Work:
        """Copy every rank's tensor into its place in the root's list, empty elsewhere; see gather."""
        return _calls.gather(self, args, kwargs)

    @overload
    def scatter(self, output_tensors: _Tensors, input_tensors: _Lists, opts: ScatterOptions | None = None) -> Work: ...
    @overload
    def scatter(
        self, output_tensor: Tensor, input_tensors: _Tensors, root: int, timeout: timedelta | None = None
    ) -> Work: ...
    def scatter(self, *args: Any, **kwargs: Any) -> Work:
        """Copy each rank's place in the root's list, empty elsewhere, into its tensor; see scatter."""
        return _calls.scatter(self, args, kwargs)

    @overload
    def reduce_scatter(
        self, output_tensors: _Tensors, input_tensors: _Lists, opts: ReduceScatterOptions | None = None
    ) -> Work: ...
    @overload
    def reduce_scatter(
        self, output: Tensor, input: _Tensors, op: Any = ..., timeout: timedelta | None = None
    ) -> Work: ...
    def reduce_scatter(self, *args: Any, **kwargs: Any) -> Work:
        """Combine every rank's list and give each rank its place in it; see reduce_scatter."""
        return _calls.reduce_scatter(self, args, kwargs)

    @overload
    def barrier(self, opts: BarrierOptions | None = None) -> Work: ...
    @overload
    def barrier(self, timeout: timedelta | None = None) -> Work: ...
    def barrier(self, *args: Any, **kwargs: Any) -> Work:
        """End on no rank before every rank has called; see barrier."""
        return _calls.barrier(self, args, kwargs)

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
        return _calls.all_to_all_single(self, "alltoall_base", args, kwargs)

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
        return _calls.all_to_all_single(self, "all_to_all_single", args, kwargs)

    def alltoall(self, output_tensors: _Tensors, input_tensors: _Tensors, opts: AllToAllOptions | None = None) -> Work:
        """Send each rank its place in the list; see all_to_all."""
        return _calls.alltoall(self, output_tensors, input_tensors, opts)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: AllgatherOptions | None = None) -> Work:
        """Gather every rank's input into one tensor; see all_gather_single."""
        return _calls.all_gather_single(self, "_allgather_base", output, input, opts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: AllgatherOptions | None = None) -> Work:
        """Gather every rank's input into one tensor; see all_gather_single."""
        return _calls.all_gather_single(self, "all_gather_single", output, input, opts)

    def _reduce_scatter_base(
        self, outputTensor: Tensor, inputTensor: Tensor, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine every rank's input and give each rank its part; see reduce_scatter_single."""
        return _calls.reduce_scatter_single(self, "_reduce_scatter_base", outputTensor, inputTensor, opts)

    def reduce_scatter_single(
        self, outputTensor: Tensor, inputTensor: Tensor, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine every rank's input and give each rank its part; see reduce_scatter_single."""
        return _calls.reduce_scatter_single(self, "reduce_scatter_single", outputTensor, inputTensor, opts)

    def allreduce_coalesced(self, tensors: _Tensors, opts: AllreduceCoalescedOptions | None = None) -> Work:
        """Combine every rank's tensors, in place; see all_reduce_coalesced."""
        return _calls.allreduce_coalesced(self, tensors, opts)

    def allgather_coalesced(
        self, output_lists: _Lists, input_list: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work:
        """Copy every rank's list into its place in the lists; see all_gather_coalesced."""
        return _calls.allgather_coalesced(self, output_lists, input_list, opts)

    def all_gather_single_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work:
        """Gather each of the inputs into its output, as all_gather_single does."""
        return _calls.all_gather_singles(self, "all_gather_single_coalesced", outputs, inputs, opts)

    def allgather_into_tensor_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work:
        """Gather each of the inputs into its output, as all_gather_single does."""
        return _calls.all_gather_singles(self, "allgather_into_tensor_coalesced", outputs, inputs, opts)

    def reduce_scatter_single_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine and scatter each of the inputs, as reduce_scatter_single does."""
        return _calls.reduce_scatter_singles(self, "reduce_scatter_single_coalesced", outputs, inputs, opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine and scatter each of the inputs, as reduce_scatter_single does."""
        return _calls.reduce_scatter_singles(self, "reduce_scatter_tensor_coalesced", outputs, inputs, opts)

    def send(self, tensors: _Tensors, dstRank: int, tag: int) -> Work:
        """Send the one tensor to a rank; see isend."""
        return _calls.send(self, tensors, dstRank, tag)

    def recv(self, tensors: _Tensors, srcRank: int, tag: int) -> Work:
        """Receive the one tensor from a rank; see irecv."""
        return _calls.receive(self, tensors, srcRank, tag)

    def recv_anysource(self, arg0: _Tensors, arg1: int, /) -> Work:
        """Receive the one tensor in *arg0* with tag *arg1* from whichever rank sends it; see irecv."""
        return _calls.receive_from_any(self, arg0, arg1)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Return when every rank has called, or tell which have not; see monitored_barrier."""
        _calls.monitored_barrier(self, timeout, wait_all_ranks)


between_graphs(globals(), __all__)
