"""The methods of ProcessGroup that communicate and have no overloads; each returns its Work at once.

Ranks are group ranks, and options those of ``call_options``. With ``opts.asyncOp`` False a call has ended on return.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shim.core import calls, groups, work
from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.errors import ArgumentError
from shim.frontends.torch._calls.arguments import list_of, outputs_of, partner_of, root_of, tag_of
from shim.frontends.torch._calls.coalesced_lists import gathered, reduced, together
from shim.frontends.torch._calls.monitored_barrier import monitored
from shim.frontends.torch._calls.reduce_op import reduction_of
from shim.frontends.torch._calls.whole_tensors import output_at_root
from shim.frontends.torch._calls.work import Work, begin
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import ArgumentTypeError, torch_function
from shim.frontends.torch._methods.call_options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllToAllOptions,
    GatherOptions,
    ReduceScatterOptions,
    begin_as,
    ends_in_the_call,
)
from shim.frontends.torch._methods.overload_resolution import checked

__all__ = ["OtherCollectives"]

_Tensors = Sequence[Tensor]
_Lists = Sequence[Sequence[Tensor]]

_ALLTOALL = torch_function("ProcessGroup.alltoall", output="output_tensors", input="input_tensors")
_ALLGATHER_BASE = torch_function("ProcessGroup._allgather_base")
_ALL_GATHER_SINGLE = torch_function("ProcessGroup.all_gather_single")
_GATHER_SINGLE = torch_function("ProcessGroup.gather_single", root="rootRank")
_GATHER_INTO_TENSOR = torch_function("ProcessGroup.gather_into_tensor", root="rootRank")
_REDUCE_SCATTER_BASE = torch_function("ProcessGroup._reduce_scatter_base", output="outputTensor", input="inputTensor")
_REDUCE_SCATTER_SINGLE = torch_function(
    "ProcessGroup.reduce_scatter_single", output="outputTensor", input="inputTensor"
)
_ALLREDUCE_COALESCED = torch_function("ProcessGroup.allreduce_coalesced", output="tensors", input="tensors")
_ALLGATHER_COALESCED = torch_function("ProcessGroup.allgather_coalesced", output="output_lists", input="input_list")
_ALL_GATHER_SINGLE_COALESCED = torch_function(
    "ProcessGroup.all_gather_single_coalesced", output="outputs", input="inputs"
)
_ALLGATHER_INTO_TENSOR_COALESCED = torch_function(
    "ProcessGroup.allgather_into_tensor_coalesced", output="outputs", input="inputs"
)
_REDUCE_SCATTER_SINGLE_COALESCED = torch_function(
    "ProcessGroup.reduce_scatter_single_coalesced", output="outputs", input="inputs"
)
_REDUCE_SCATTER_TENSOR_COALESCED = torch_function(
    "ProcessGroup.reduce_scatter_tensor_coalesced", output="outputs", input="inputs"
)
_SEND = torch_function("ProcessGroup.send", input="tensors", peer="dstRank", root="dstRank")
_RECV = torch_function("ProcessGroup.recv", output="tensors", peer="srcRank", root="srcRank")
_RECV_ANY = torch_function("ProcessGroup.recv_anysource", output="tensors")
_MONITORED = torch_function("ProcessGroup.monitored_barrier")


class OtherCollectives:
    """What the ranks of a ProcessGroup do together; ``core`` is core's group."""

    __slots__ = ()
    core: groups.ProcessGroup

    def alltoall(self, output_tensors: _Tensors, input_tensors: _Tensors, opts: AllToAllOptions | None = None) -> Work:
        """Send each rank its place in the list; see all_to_all."""
        members = self.core
        options = checked(_ALLTOALL, members, AllToAllOptions, opts)
        outputs = outputs_of(_ALLTOALL, members, "output", output_tensors)
        inputs = list_of(_ALLTOALL, members, "input", input_tensors)
        return begin_as(
            options,
            calls.all_to_all(_ALLTOALL, members, outputs, inputs, None, None, ends_in_the_call(options)),
            outputs,
        )

    def _allgather_base(self, output: Tensor, input: Tensor, opts: AllgatherOptions | None = None) -> Work:
        """Gather every rank's input into one tensor; see all_gather_single."""
        return _gather_one(_ALLGATHER_BASE, self.core, output, input, opts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: AllgatherOptions | None = None) -> Work:
        """Gather every rank's input into one tensor; see all_gather_single."""
        return _gather_one(_ALL_GATHER_SINGLE, self.core, output, input, opts)

    def gather_single(self, output: Tensor, input: Tensor, opts: GatherOptions | None = None) -> Work:
        """Gather every rank's input into one tensor on the root; see gather_single."""
        return _gather_at_root(_GATHER_SINGLE, self.core, output, input, opts)

    def gather_into_tensor(self, output: Tensor, input: Tensor, opts: GatherOptions | None = None) -> Work:
        """Gather every rank's input into one tensor on the root; see gather_single."""
        return _gather_at_root(_GATHER_INTO_TENSOR, self.core, output, input, opts)

    def _reduce_scatter_base(
        self, outputTensor: Tensor, inputTensor: Tensor, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine every rank's input and give each rank its part; see reduce_scatter_single."""
        return _reduce_scatter_one(_REDUCE_SCATTER_BASE, self.core, outputTensor, inputTensor, opts)

    def reduce_scatter_single(
        self, outputTensor: Tensor, inputTensor: Tensor, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine every rank's input and give each rank its part; see reduce_scatter_single."""
        return _reduce_scatter_one(_REDUCE_SCATTER_SINGLE, self.core, outputTensor, inputTensor, opts)

    def allreduce_coalesced(self, tensors: _Tensors, opts: AllreduceCoalescedOptions | None = None) -> Work:
        """Combine every rank's tensors, in place; see all_reduce_coalesced."""
        members = self.core
        options = checked(_ALLREDUCE_COALESCED, members, AllreduceCoalescedOptions, opts)
        several = list_of(_ALLREDUCE_COALESCED, members, "output", tensors)
        return begin_as(options, reduced(_ALLREDUCE_COALESCED, members, several, options.reduceOp), several)

    def allgather_coalesced(
        self, output_lists: _Lists, input_list: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work:
        """Copy every rank's list into its place in the lists; see all_gather_coalesced."""
        members = self.core
        options = checked(_ALLGATHER_COALESCED, members, AllgatherOptions, opts)
        outputs = list_of(_ALLGATHER_COALESCED, members, "output", output_lists)
        inputs = list_of(_ALLGATHER_COALESCED, members, "input", input_list)
        return begin_as(options, gathered(_ALLGATHER_COALESCED, members, outputs, inputs), outputs)

    def all_gather_single_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work:
        """Gather each of the inputs into its output, as all_gather_single does."""
        return _gather_each(_ALL_GATHER_SINGLE_COALESCED, self.core, outputs, inputs, opts)

    def allgather_into_tensor_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: AllgatherOptions | None = None
    ) -> Work:
        """Gather each of the inputs into its output, as all_gather_single does."""
        return _gather_each(_ALLGATHER_INTO_TENSOR_COALESCED, self.core, outputs, inputs, opts)

    def reduce_scatter_single_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine and scatter each of the inputs, as reduce_scatter_single does."""
        return _reduce_scatter_each(_REDUCE_SCATTER_SINGLE_COALESCED, self.core, outputs, inputs, opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Combine and scatter each of the inputs, as reduce_scatter_single does."""
        return _reduce_scatter_each(_REDUCE_SCATTER_TENSOR_COALESCED, self.core, outputs, inputs, opts)

    def send(self, tensors: _Tensors, dstRank: int, tag: int) -> Work:
        """Send the one tensor to a rank; see isend."""
        members = self.core
        tensor = _only_one(_SEND, members, tensors)
        receiver = partner_of(_SEND, members, None, dstRank)
        return begin(calls.send(_SEND, members, tensor, receiver, tag_of(_SEND, members, tag)), tensor)

    def recv(self, tensors: _Tensors, srcRank: int, tag: int) -> Work:
        """Receive the one tensor from a rank; see irecv."""
        members = self.core
        tensor = _only_one(_RECV, members, tensors)
        sender = partner_of(_RECV, members, None, srcRank)
        return begin(calls.receive(_RECV, members, tensor, sender, tag_of(_RECV, members, tag)), tensor)

    def recv_anysource(self, arg0: _Tensors, arg1: int, /) -> Work:
        """Receive the one tensor in *arg0* with tag *arg1* from whichever rank sends it; see irecv."""
        members = self.core
        tensor = _only_one(_RECV_ANY, members, arg0)
        return begin(calls.receive(_RECV_ANY, members, tensor, None, tag_of(_RECV_ANY, members, arg1)), tensor)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Return when every rank has called, or tell which have not; see monitored_barrier."""
        monitored(_MONITORED, self.core, timeout, wait_all_ranks)


def _gather_one(caller: Caller, members: groups.ProcessGroup, output: Any, input: Any, opts: Any) -> Work:
    options = checked(caller, members, AllgatherOptions, opts)
    return begin_as(
        options, calls.all_gather(caller, members, output, input, None, ends_in_the_call(options), True), output
    )


def _gather_at_root(caller: Caller, members: groups.ProcessGroup, output: Any, input: Any, opts: Any) -> Work:
    options = checked(caller, members, GatherOptions, opts)
    root = root_of(caller, members, None, options.rootRank)
    into = output_at_root(caller, members, output, root)
    prepared = calls.gather(caller, members, into, input, root, None, ends_in_the_call(options))
    return begin_as(options, prepared, output)


def _gather_each(caller: Caller, members: groups.ProcessGroup, outputs: Any, inputs: Any, opts: Any) -> Work:
    options = checked(caller, members, AllgatherOptions, opts)
    pairs = _pairs(caller, members, outputs, inputs)
    works = [calls.all_gather(caller, members, *pair, whole=True) for pair in pairs]
    return begin_as(options, together(caller, members, works), outputs)


def _reduce_scatter_one(caller: Caller, members: groups.ProcessGroup, output: Any, input: Any, opts: Any) -> Work:
    options = checked(caller, members, ReduceScatterOptions, opts)
    return begin_as(
        options, _reduce_scatter(caller, members, output, input, options, ends_in_the_call(options)), output
    )


def _reduce_scatter_each(caller: Caller, members: groups.ProcessGroup, outputs: Any, inputs: Any, opts: Any) -> Work:
    options = checked(caller, members, ReduceScatterOptions, opts)
    pairs = _pairs(caller, members, outputs, inputs)
    works = [_reduce_scatter(caller, members, *pair, options, False) for pair in pairs]
    return begin_as(options, together(caller, members, works), outputs)


def _reduce_scatter(
    caller: Caller, members: groups.ProcessGroup, output: Any, input: Any, opts: ReduceScatterOptions, now: bool
) -> work.Work:
    op, factor = reduction_of(caller, members, opts.reduceOp, input)
    return calls.reduce_scatter(caller, members, output, input, op, factor, None, now, True)


def _pairs(caller: Caller, members: groups.ProcessGroup, outputs: Any, inputs: Any) -> list[tuple[Any, Any]]:
    """Return each of the list *outputs* with its place in the list *inputs*, of which there are as many."""
    into, of = list_of(caller, members, "output", outputs), list_of(caller, members, "input", inputs)
    if len(into) != len(of) or not of:
        calls.refuse(
            caller,
            members,
            ArgumentError(f"outputs and inputs must hold as many tensors, at least one, got {len(into)} and {len(of)}"),
        )
    return list(zip(into, of, strict=True))


def _only_one(caller: Caller, members: groups.ProcessGroup, tensors: Any) -> Any:
    """Return the one tensor in the list *tensors*; the peer, who may come later, is not told when there is none."""
    if not isinstance(tensors, (list, tuple)):
        error = ArgumentTypeError(f"tensors must be a list of one tensor, got a {type(tensors).__qualname__}")
        raise caller.explain(error, members)
    if len(tensors) != 1:
        raise caller.explain(ArgumentError(f"tensors must hold one tensor, got {len(tensors)}"), members)
    return tensors[0]


between_graphs(globals(), __all__)
