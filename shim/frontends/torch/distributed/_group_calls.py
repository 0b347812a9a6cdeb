"""What the communicating methods of ProcessGroup do; ranks are group ranks, and every call returns its Work."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from shim.core import calls, work
from shim.core.callers import Caller
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.torch.distributed._arguments import (
    list_at_root,
    list_of,
    outputs_at_root,
    outputs_of,
    partner_of,
    refuse,
    root_of,
    splits_of,
    tag_of,
    told,
)
from shim.frontends.torch.distributed._call_options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllToAllOptions,
    CallOptions,
    ReduceScatterOptions,
)
from shim.frontends.torch.distributed._errors import ArgumentTypeError, torch_function
from shim.frontends.torch.distributed._monitored import monitored
from shim.frontends.torch.distributed._options import refuse_device
from shim.frontends.torch.distributed._overloads import (
    ALLGATHER,
    ALLREDUCE,
    ALLTOALL_BASE,
    BARRIER,
    BROADCAST,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    checked,
    read,
)
from shim.frontends.torch.distributed._reduce_op import reduction_of
from shim.frontends.torch.distributed._together import gathered, reduced, together
from shim.frontends.torch.distributed._work import Work, begin

__all__ = [
    "all_gather_single",
    "all_gather_singles",
    "all_to_all_single",
    "allgather",
    "allgather_coalesced",
    "allreduce",
    "allreduce_coalesced",
    "alltoall",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "receive",
    "receive_from_any",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_singles",
    "scatter",
    "send",
]

_Arguments = Sequence[Any]
_Named = Mapping[str, Any]


@functools.cache
def _method(name: str, **roles: str) -> Caller:
    return torch_function(f"ProcessGroup.{name}", **roles)


_ALLREDUCE = _method("allreduce", output="tensors", input="tensors")
_ALLREDUCE_COALESCED = _method("allreduce_coalesced", output="tensors", input="tensors")
_BROADCAST = _method("broadcast", output="tensors", input="tensors", root="rootRank")
_ALLGATHER = _method("allgather", output="output_tensors", input="input_tensors")
_ALLGATHER_COALESCED = _method("allgather_coalesced", output="output_lists", input="input_list")
_GATHER = _method("gather", output="output_tensors", input="input_tensors", root="rootRank")
_SCATTER = _method("scatter", output="output_tensors", input="input_tensors", root="rootRank")
_REDUCE = _method("reduce", output="tensors", input="tensors", root="rootRank")
_REDUCE_SCATTER = _method("reduce_scatter", output="output_tensors", input="input_tensors")
_ALLTOALL = _method("alltoall", output="output_tensors", input="input_tensors")
_BARRIER = _method("barrier")
_MONITORED = _method("monitored_barrier")
_SEND = _method("send", input="tensors", peer="dstRank", root="dstRank")
_RECV = _method("recv", output="tensors", peer="srcRank", root="srcRank")
_RECV_ANY = _method("recv_anysource", output="tensors")


def allreduce(group: Any, arguments: _Arguments, named: _Named) -> Work:
    tensor, opts = read(_ALLREDUCE, group, ALLREDUCE, arguments, named)
    op, factor = reduction_of(_ALLREDUCE, group, opts.reduceOp, tensor)
    return _begin(calls.all_reduce(_ALLREDUCE, group.core, tensor, tensor, op, factor), tensor, opts)


def allreduce_coalesced(group: Any, tensors: Any, opts: Any) -> Work:
    caller = _ALLREDUCE_COALESCED
    options = checked(caller, group, AllreduceCoalescedOptions, opts)
    several = list_of(caller, group, "output", tensors)
    return _begin(reduced(caller, group, several, options.reduceOp), several, options)


def broadcast(group: Any, arguments: _Arguments, named: _Named) -> Work:
    tensor, opts = read(_BROADCAST, group, BROADCAST, arguments, named)
    _refuse_root_tensor(_BROADCAST, group, opts)
    root = root_of(_BROADCAST, group.core, None, opts.rootRank)
    return _begin(calls.broadcast(_BROADCAST, group.core, tensor, root), tensor, opts)


def allgather(group: Any, arguments: _Arguments, named: _Named) -> Work:
    outputs, tensor, opts = read(_ALLGATHER, group, ALLGATHER, arguments, named)
    places = outputs_of(_ALLGATHER, group, "output", outputs)
    return _begin(calls.all_gather(_ALLGATHER, group.core, places, tensor), places, opts)


def all_gather_single(group: Any, name: str, output: Any, input: Any, opts: Any) -> Work:
    caller = _method(name)
    options = checked(caller, group, AllgatherOptions, opts)
    return _begin(_single_gather(caller, group, output, input), output, options)


def allgather_coalesced(group: Any, output_lists: Any, input_list: Any, opts: Any) -> Work:
    caller = _ALLGATHER_COALESCED
    options = checked(caller, group, AllgatherOptions, opts)
    outputs = list_of(caller, group, "output", output_lists)
    inputs = list_of(caller, group, "input", input_list)
    return _begin(gathered(caller, group, outputs, inputs), outputs, options)


def all_gather_singles(group: Any, name: str, outputs: Any, inputs: Any, opts: Any) -> Work:
    caller = _method(name, output="outputs", input="inputs")
    options = checked(caller, group, AllgatherOptions, opts)
    pairs = _pairs(caller, group, outputs, inputs)
    works = [_single_gather(caller, group, output, input) for output, input in pairs]
    return _begin(together(caller, group.core, works), outputs, options)


def gather(group: Any, arguments: _Arguments, named: _Named) -> Work:
    outputs, tensor, opts = read(_GATHER, group, GATHER, arguments, named)
    root = root_of(_GATHER, group.core, None, opts.rootRank)
    places = outputs_at_root(_GATHER, group, "output", outputs, root)
    return _begin(calls.gather(_GATHER, group.core, places, tensor, root), places or [], opts)


def scatter(group: Any, arguments: _Arguments, named: _Named) -> Work:
    tensor, inputs, opts = read(_SCATTER, group, SCATTER, arguments, named)
    root = root_of(_SCATTER, group.core, None, opts.rootRank)
    places = list_at_root(_SCATTER, group, "input", inputs, root)
    return _begin(calls.scatter(_SCATTER, group.core, tensor, places, root), tensor, opts)


def reduce(group: Any, arguments: _Arguments, named: _Named) -> Work:
    tensor, opts = read(_REDUCE, group, REDUCE, arguments, named)
    _refuse_root_tensor(_REDUCE, group, opts)
    root = root_of(_REDUCE, group.core, None, opts.rootRank)
    op, factor = reduction_of(_REDUCE, group, opts.reduceOp, tensor)
    return _begin(calls.reduce(_REDUCE, group.core, tensor, tensor, op, root, factor), tensor, opts)


def reduce_scatter(group: Any, arguments: _Arguments, named: _Named) -> Work:
    caller = _REDUCE_SCATTER
    output, inputs, opts = read(caller, group, REDUCE_SCATTER, arguments, named)
    op, factor = reduction_of(caller, group, opts.reduceOp, output)
    several = list_of(caller, group, "input", inputs)
    return _begin(calls.reduce_scatter(caller, group.core, output, several, op, factor), output, opts)


def reduce_scatter_single(group: Any, name: str, output: Any, input: Any, opts: Any) -> Work:
    caller = _method(name, output="outputTensor", input="inputTensor")
    options = checked(caller, group, ReduceScatterOptions, opts)
    return _begin(_single_reduce_scatter(caller, group, output, input, options), output, options)


def reduce_scatter_singles(group: Any, name: str, outputs: Any, inputs: Any, opts: Any) -> Work:
    caller = _method(name, output="outputs", input="inputs")
    options = checked(caller, group, ReduceScatterOptions, opts)
    pairs = _pairs(caller, group, outputs, inputs)
    works = [_single_reduce_scatter(caller, group, output, input, options) for output, input in pairs]
    return _begin(together(caller, group.core, works), outputs, options)


def alltoall(group: Any, output_tensors: Any, input_tensors: Any, opts: Any) -> Work:
    options = checked(_ALLTOALL, group, AllToAllOptions, opts)
    outputs = outputs_of(_ALLTOALL, group, "output", output_tensors)
    inputs = list_of(_ALLTOALL, group, "input", input_tensors)
    return _begin(calls.all_to_all(_ALLTOALL, group.core, outputs, inputs), outputs, options)


def all_to_all_single(group: Any, name: str, arguments: _Arguments, named: _Named) -> Work:
    caller = _method(name, output_splits="output_split_sizes", input_splits="input_split_sizes")
    output, input, output_splits, input_splits, opts = read(caller, group, ALLTOALL_BASE, arguments, named)
    prepared = calls.all_to_all(
        caller,
        group.core,
        output,
        input,
        splits_of(caller, group, "output_splits", output_splits),
        splits_of(caller, group, "input_splits", input_splits),
        whole=True,
    )
    return _begin(prepared, output, opts)


def barrier(group: Any, arguments: _Arguments, named: _Named) -> Work:
    (opts,) = read(_BARRIER, group, BARRIER, arguments, named)
    told(_BARRIER, group, refuse_device, "device", opts.device)
    told(_BARRIER, group, refuse_device, "device_ids", opts.device_ids)
    return _begin(calls.barrier(_BARRIER, group.core), [], opts)


def monitored_barrier(group: Any, timeout: Any, wait_all_ranks: bool) -> None:
    monitored(_MONITORED, group, timeout, wait_all_ranks, stacklevel=4)


def send(group: Any, tensors: Any, peer: Any, tag: Any) -> Work:
    tensor = _only_one(_SEND, group, tensors)
    receiver = partner_of(_SEND, group.core, None, peer)
    return begin(calls.send(_SEND, group.core, tensor, receiver, tag_of(_SEND, group.core, tag)), tensor)


def receive(group: Any, tensors: Any, peer: Any, tag: Any) -> Work:
    tensor = _only_one(_RECV, group, tensors)
    sender = partner_of(_RECV, group.core, None, peer)
    return begin(calls.receive(_RECV, group.core, tensor, sender, tag_of(_RECV, group.core, tag)), tensor)


def receive_from_any(group: Any, tensors: Any, tag: Any) -> Work:
    tensor = _only_one(_RECV_ANY, group, tensors)
    return begin(calls.receive(_RECV_ANY, group.core, tensor, None, tag_of(_RECV_ANY, group.core, tag)), tensor)


def _begin(prepared: work.Work, outputs: Any, opts: CallOptions) -> Work:
    return begin(prepared, outputs, opts.seconds, opts.asyncOp)


def _single_gather(caller: Caller, group: Any, output: Any, input: Any) -> work.Work:
    return calls.all_gather(caller, group.core, output, input, whole=True)


def _single_reduce_scatter(
    caller: Caller, group: Any, output: Any, input: Any, opts: ReduceScatterOptions
) -> work.Work:
    op, factor = reduction_of(caller, group, opts.reduceOp, input)
    return calls.reduce_scatter(caller, group.core, output, input, op, factor, whole=True)


def _pairs(caller: Caller, group: Any, outputs: Any, inputs: Any) -> list[tuple[Any, Any]]:
    """Return each of the list *outputs* with its place in the list *inputs*, of which there are as many."""
    into, of = list_of(caller, group, "output", outputs), list_of(caller, group, "input", inputs)
    if len(into) != len(of) or not of:
        refuse(
            caller,
            group,
            ArgumentError(f"outputs and inputs must hold as many tensors, at least one, got {len(into)} and {len(of)}"),
        )
    return list(zip(into, of, strict=True))


def _only_one(caller: Caller, group: Any, tensors: Any) -> Any:
    """Return the one tensor in the list *tensors*; the peer, who may come later, is not told when there is none."""
    if not isinstance(tensors, (list, tuple)):
        error = ArgumentTypeError(f"tensors must be a list of one tensor, got a {type(tensors).__qualname__}")
        raise caller.explain(error, group.core)
    if len(tensors) != 1:
        raise caller.explain(ArgumentError(f"tensors must hold one tensor, got {len(tensors)}"), group.core)
    return tensors[0]


def _refuse_root_tensor(caller: Caller, group: Any, opts: Any) -> None:
    if opts.rootTensor != 0:
        error = UnsupportedError(
            f"rootTensor must be 0: a rank of the torch frontend gives one tensor, got {opts.rootTensor}"
        )
        refuse(caller, group, error)
