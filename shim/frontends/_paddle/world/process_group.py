"""``Group.process_group``: the methods of paddle's own ProcessGroup, whose ranks are group ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import index
from typing import Any, NoReturn

from shim.core.engines.base import Tensor
from shim.errors import NotMemberError, RankError, UnsupportedError
from shim.frontends._paddle.arguments import refuse
from shim.frontends._paddle.collectives.bodies import (
    broadcast_from,
    exchange,
    exchange_single,
    gather_all,
    gather_at,
    reduce_at,
    reduce_everywhere,
    reduce_one_tensor,
    reduce_parts,
    scatter_from,
)
from shim.frontends._paddle.collectives.of_both import meet
from shim.frontends._paddle.collectives.point_to_point import receive_from, send_to
from shim.frontends._paddle.errors import ArgumentTypeError, OutsiderError, paddle_function
from shim.frontends._paddle.graphs import run_as_written
from shim.frontends._paddle.groups.group_views import Group, group_of
from shim.frontends._paddle.reduce_op import ReduceOp, engine_op
from shim.frontends._paddle.tasks import Task, ended


def _method(name: str, **roles: str) -> Any:
    return paddle_function(f"ProcessGroup.{name}", errors={NotMemberError: OutsiderError}, **roles)


_ALL_GATHER = _method("all_gather", output="out", input="in")
_ALL_GATHER_INTO_TENSOR = _method("all_gather_into_tensor", output="out", input="in")
_ALL_REDUCE = _method("all_reduce", output="tensor", input="tensor")
_ALL_TO_ALL = _method("all_to_all", output="out", input="in")
_ALL_TO_ALL_SINGLE = _method(
    "all_to_all_single", output="out", input="in", output_splits="out_sizes", input_splits="in_sizes"
)
_BARRIER = _method("barrier")
_BROADCAST = _method("broadcast", output="tensor", input="tensor", root="src")
_GATHER = _method("gather", output="out", input="in", root="dst")
_RECV = _method("recv", output="tensor", peer="src")
_REDUCE = _method("reduce", output="tensor", input="tensor", root="dst")
_REDUCE_SCATTER = _method("reduce_scatter", output="out", input="in")
_SCATTER = _method("scatter", output="out", input="in", root="src")
_SEND = _method("send", input="tensor", peer="dst")

# Methods that paddle has for devices, by what serves here.
_ON_CALC_STREAM = (
    *("all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "all_to_all_tensor"),
    *("broadcast", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_tensor", "send"),
)
_INSTEAD = {
    f"{name}_on_calc_stream": f"Call {name}(..., sync_op=True): host tensors have no stream."
    for name in _ON_CALC_STREAM
}
for _name in ("all_gather", "recv", "send"):
    _INSTEAD[f"{_name}_partial"] = _INSTEAD[f"{_name}_partial_on_calc_stream"] = f"Call {_name} with the part alone."
for _name in ("eager_connect", "eager_connect_ring_exchange"):
    _INSTEAD[_name] = "Leave it out: the ranks of a group are connected when it is made."
for _name in ("_start_coalescing", "_end_coalescing"):
    _INSTEAD[_name] = "Call batch_isend_irecv, or the collectives with sync_op=False."


class ProcessGroup:
    """What serves a Group. A call without *sync_op* has ended on return, as has every one on gloo.

    Deviates: the methods that end in ``_on_calc_stream`` or ``_partial``, and the private ones, raise UnsupportedError.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/new_group_en.html
    """

    __slots__ = ("__weakref__", "_group")

    def __init__(self, group: Group) -> None:
        self._group = group

    def rank(self) -> int:
        """Return the caller's rank in the group."""
        return self._group.rank

    def size(self) -> int:
        """Return the number of its ranks."""
        return self._group.nranks

    def name(self) -> str:
        """Return the backend string it was made with, in upper case."""
        return self._group.backend

    def all_gather(self, out: Any, in_: Any, sync_op: bool | None = None) -> Task | None:
        """Copy every rank's *in_* into its place in *out*. Without *sync_op*, *in_* comes before *out*."""
        out, in_ = (in_, out) if sync_op is None else (out, in_)
        return gather_all(_ALL_GATHER, out, in_, self._group, sync_op is not False)

    def all_gather_into_tensor(self, out: Tensor, in_: Tensor, sync_op: bool) -> Task | None:
        """Copy every rank's *in_* into its part of *out*."""
        return gather_all(_ALL_GATHER_INTO_TENSOR, out, in_, self._group, sync_op)

    def all_reduce(self, tensor: Tensor, op: Any, sync_op: bool) -> Task | None:
        """Combine every rank's *tensor* by *op*, in place."""
        return reduce_everywhere(_ALL_REDUCE, tensor, self._op(_ALL_REDUCE, op), self._group, sync_op)

    def allreduce(self, tensor: Tensor, op: Any = ReduceOp.SUM) -> Task | None:
        """Combine every rank's *tensor* by *op*, in place."""
        return self.all_reduce(tensor, op, True)

    def all_to_all(self, out: list[Any], in_: Sequence[Tensor], sync_op: bool) -> Task | None:
        """Send tensor *j* of *in_* to rank *j*, into its *out* at this rank."""
        return exchange(_ALL_TO_ALL, out, in_, self._group, sync_op)

    def all_to_all_tensor(self, out: Tensor, in_: Tensor, sync_op: bool) -> Task | None:
        """Cut *in_* into an equal part for each rank and put the parts received in *out*."""
        return exchange(_ALL_TO_ALL, out, in_, self._group, sync_op)

    def alltoall(self, in_: Any, out: Any) -> Task | None:
        """Do what ``all_to_all`` does, with lists or tensors; the input comes first."""
        return exchange(_ALL_TO_ALL, out, in_, self._group, True)

    def all_to_all_single(
        self, out: Tensor, in_: Tensor, out_sizes: Sequence[int], in_sizes: Sequence[int], sync_op: bool
    ) -> Task | None:
        """Cut *in_* by *in_sizes*, in rows, and put the parts received, by *out_sizes*, in *out*; empty ones mean equal parts."""
        return exchange_single(_ALL_TO_ALL_SINGLE, out, in_, out_sizes, in_sizes, self._group, sync_op)

    def alltoall_single(
        self, in_: Tensor, out: Tensor, in_sizes: Sequence[int], out_sizes: Sequence[int]
    ) -> Task | None:
        """Do what ``all_to_all_single`` does; the input comes first."""
        return self.all_to_all_single(out, in_, out_sizes, in_sizes, True)

    def barrier(self, device_id: int = -1) -> Task:
        """Wait until every rank has called this, and for what is on its current device, whatever *device_id* says."""
        self._integer(_BARRIER, "device_id", device_id)
        meet(_BARRIER, self._group)
        return ended()

    def broadcast(self, tensor: Tensor, src: int, sync_op: bool = True) -> Task | None:
        """Copy the *tensor* of group rank *src* into every rank's *tensor*."""
        return broadcast_from(_BROADCAST, tensor, self._world_rank(_BROADCAST, "root", src), self._group, sync_op)

    def gather(self, in_: Tensor, out: Any, dst: int, sync_op: bool, use_calc_stream: bool = False) -> Task | None:
        """Copy every rank's *in_* into its place in *out* on group rank *dst*; elsewhere *out* is not read."""
        if use_calc_stream:
            self._unsupported(
                "gather_on_calc_stream", "Leave use_calc_stream out: a synchronous call is on the calculation stream."
            )
        root = self._world_rank(_GATHER, "root", dst)
        return gather_at(_GATHER, in_, out if dst == self._group.rank else None, root, self._group, sync_op)

    def recv(self, tensor: Tensor, src: int, sync_op: bool = True) -> Task | None:
        """Receive into *tensor* what group rank *src* sends."""
        return receive_from(_RECV, tensor, self._peer(_RECV, src), self._group, sync_op)

    def reduce(self, tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, sync_op: bool = True) -> Task | None:
        """Combine every rank's *tensor* by *op* into that of group rank *dst*."""
        root = self._world_rank(_REDUCE, "root", dst)
        return reduce_at(_REDUCE, tensor, root, self._op(_REDUCE, op), self._group, sync_op)

    def reduce_scatter(self, out: Tensor, in_: Sequence[Tensor], op: Any, sync_op: bool) -> Task | None:
        """Combine every rank's *in_*, a tensor for each rank, by *op*; *out* gets this rank's."""
        return reduce_parts(_REDUCE_SCATTER, out, in_, self._op(_REDUCE_SCATTER, op), self._group, sync_op)

    def reduce_scatter_tensor(self, out: Tensor, in_: Tensor, op: Any, sync_op: bool) -> Task | None:
        """Combine every rank's *in_* by *op*; *out* gets this rank's part."""
        return reduce_one_tensor(_REDUCE_SCATTER, out, in_, self._op(_REDUCE_SCATTER, op), self._group, sync_op)

    def scatter(self, out: Any, in_: Any, src: int, sync_op: bool | None = None) -> Task | None:
        """Copy each rank's place in group rank *src*'s *in_*, a list or tensor, into its *out*. Without *sync_op*, *in_* comes before *out*."""
        out, in_ = (in_, out) if sync_op is None else (out, in_)
        root = self._world_rank(_SCATTER, "root", src)
        return scatter_from(
            _SCATTER, out, in_ if src == self._group.rank else None, root, self._group, sync_op is not False
        )

    def scatter_tensor(self, out: Tensor, in_: Tensor, src: int, sync_op: bool) -> Task | None:
        """Copy each rank's part of group rank *src*'s *in_* into its *out*."""
        return self.scatter(out, in_, src, sync_op)

    def send(self, tensor: Tensor, dst: int, sync_op: bool = True) -> Task | None:
        """Send *tensor* to group rank *dst*."""
        return send_to(_SEND, tensor, self._peer(_SEND, dst), self._group, sync_op)

    def __getattr__(self, name: str) -> Any:
        if name not in _INSTEAD:
            raise AttributeError(f"paddle's ProcessGroup has no {name!r}")
        return partial(self._unsupported, name, _INSTEAD[name])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_INSTEAD})

    def __repr__(self) -> str:
        return f"<ProcessGroup {self._group.name!r} rank {self._group.rank} of {self._group.nranks}>"

    def _unsupported(self, name: str, instead: str, *given: Any, **named: Any) -> NoReturn:
        del given, named
        error = UnsupportedError(f"the paddle frontend's engine has no such method\n{instead}")
        refuse(_method(name), self._group, error)

    def _op(self, caller: Any, op: Any) -> Any:
        """Return the engines' reduce op for an *op* of ``paddle.distributed`` or of paddle's own C++ enumeration."""
        kind = type(op)
        is_native = kind.__name__ == "ReduceOp" and kind.__module__.startswith("paddle.")
        return engine_op(caller, self._group, int(op) if is_native else op)

    def _integer(self, caller: Any, role: str, value: Any) -> int:
        try:
            return index(value)
        except TypeError:
            refuse(caller, self._group, ArgumentTypeError(f"{{{role}}} must be an integer, got {value!r}"))

    def _world_rank(self, caller: Any, role: str, rank: Any) -> int:
        """Return the rank in the world of the group rank *rank*."""
        place = self._integer(caller, role, rank)
        if not 0 <= place < self._group.nranks:
            refuse(
                caller,
                self._group,
                RankError(f"{{{role}}} must be a group rank, in 0..{self._group.nranks - 1}, got {rank}"),
            )
        return self._group.ranks[place]

    def _peer(self, caller: Any, rank: Any) -> int:
        """Return the same of a rank to send to or receive from, of which no other rank is told where it is wrong."""
        if type(rank) is not int or not 0 <= rank < self._group.nranks:
            error = RankError(f"{{peer}} must be a group rank, in 0..{self._group.nranks - 1}, got {rank!r}")
            raise caller.explain(error, group_of(caller, self._group))
        return self._group.ranks[rank]


run_as_written(globals())
