"""One collective for each tensor of a list, which begin together: torch's coalesced functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import calls, groups, work
from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError
from shim.frontends.torch._calls.arguments import check_dense, is_now, list_of, outputs_of, told
from shim.frontends.torch._calls.reduce_op import reduction_of
from shim.frontends.torch._calls.tensor_checks import COMPLEX_PARTS
from shim.frontends.torch._calls.work import finish, future_class


class _Together(work.Batch):
    """A batch that begins when *agreement*, in which the ranks compare how many works they have, has ended well.

    Where it fails, which it does on every rank, none of the works is begun: one that only some ranks have would meet
    the others' next collective. So starting it waits for all ranks, in the background too, up to the group's timeout.
    """

    __slots__ = ("_agreement",)

    def __init__(self, agreement: work.Work, works: Sequence[work.Work]) -> None:
        super().__init__(works)
        self._agreement: work.Work | None = agreement

    def start(self) -> work.Work | None:
        if self._agreement is not None:
            self._agreement.wait()
            self._agreement = None
        return super().start()


def together(caller: Caller, members: groups.ProcessGroup, works: Sequence[work.Work]) -> work.Work:
    """Return the work of all *works*, of which every rank has the same number, else starting it raises MismatchError.

    A rank that refuses its arguments must do so once, before it starts this: the others meet that in the agreement.
    """
    if work.ABSENT in works:
        return work.ABSENT
    number = f"{len(works)} coalesced call{'' if len(works) == 1 else 's'}"
    try:
        return _Together(calls.barrier(caller, members, before=number), works)
    except ShimError as error:
        calls.tell(members, str(error))
        raise


def reduced(caller: Caller, members: groups.ProcessGroup, tensors: list[Any], op: Any) -> work.Work:
    """Prepare an all_reduce of each of *tensors*, which are of one dtype."""
    _of_one_dtype(caller, members, "output", tensors)
    works = [
        calls.all_reduce(
            caller,
            members,
            tensor,
            tensor,
            *reduction_of(caller, members, op, tensor),
            reduce_unreadable=_refuse_sparse,
        )
        for tensor in tensors
    ]
    return together(caller, members, works)


def _refuse_sparse(caller: Caller, members: groups.ProcessGroup, tensor: Any, *_: Any) -> None:
    check_dense(caller, members, tensor)


def gathered(caller: Caller, members: groups.ProcessGroup, outputs: Sequence[Any], inputs: list[Any]) -> work.Work:
    """Prepare an all_gather of each of *inputs* into *outputs*, which holds as many for each rank."""
    if len(outputs) != members.size and members.rank >= 0:
        calls.refuse(
            caller,
            members,
            ArgumentError(f"{{output}} must hold a list for each of {members.size} ranks, got {len(outputs)}"),
        )
    for place, tensors in enumerate(outputs):
        if len(list_of(caller, members, "output", tensors)) != len(inputs):
            calls.refuse(
                caller,
                members,
                ArgumentError(
                    f"{{output}}[{place}] must hold as many tensors as {{input}}, got {len(tensors)} for {len(inputs)}"
                ),
            )
    works = [
        calls.all_gather(caller, members, outputs_of(caller, members, "output", list(column)), tensor)
        for column, tensor in zip(
            zip(*outputs, strict=True), inputs, strict=members.rank >= 0
        )  # outsiders may give none
    ]
    return together(caller, members, works)


def all_reduce_together(caller: Caller, members: groups.ProcessGroup, tensors: Any, op: Any, async_op: bool) -> Any:
    """Do what ``all_reduce_coalesced`` documents."""
    several = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    outputs = list_of(caller, members, "output", several)
    return _finish_in_future(caller, members, reduced(caller, members, outputs, op), async_op, outputs)


def all_gather_together(caller: Caller, members: groups.ProcessGroup, outputs: Any, inputs: Any, async_op: bool) -> Any:
    """Do what ``all_gather_coalesced`` documents."""
    tensors = list_of(caller, members, "input", inputs)
    _of_one_dtype(caller, members, "input", tensors)
    prepared = gathered(caller, members, list_of(caller, members, "output", outputs), tensors)
    return _finish_in_future(caller, members, prepared, async_op, outputs)


def _finish_in_future(
    caller: Caller, members: groups.ProcessGroup, prepared: work.Work, async_op: bool, outputs: list[Any]
) -> Any:
    if not is_now(caller, members, async_op):
        told(caller, members, future_class)  # before anything begins
    started = finish(prepared, async_op, outputs)
    return None if started is None else started.get_future()


def _of_one_dtype(caller: Caller, members: groups.ProcessGroup, role: str, tensors: list[Any]) -> None:
    """Refuse an empty list, and several dtypes; complex numbers go with the dtype of their parts."""
    if not tensors:
        calls.refuse(caller, members, ArgumentError(f"{{{role}}} must hold at least one tensor, got an empty list"))
    dtypes = {str(tensor.dtype).rpartition(".")[2] for tensor in tensors if hasattr(tensor, "dtype")}
    if len({COMPLEX_PARTS.get(dtype, dtype) for dtype in dtypes}) > 1:
        calls.refuse(caller, members, ArgumentError(f"{{{role}}} must hold tensors of one dtype, got {sorted(dtypes)}"))
