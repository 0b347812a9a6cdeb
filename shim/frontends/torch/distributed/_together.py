"""One collective for each tensor of a list, which begin together: torch's coalesced functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import calls, groups, work
from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch.distributed._arguments import is_now, list_of, outputs_of, refuse, told
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._reduce_op import reduction_of
from shim.frontends.torch.distributed._work import finish, future_class

__all__ = ["all_gather_together", "all_reduce_together", "gathered", "reduced", "together"]


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
    return _Together(calls.barrier(caller, members, before=number), works)


def reduced(caller: Caller, group: Any, tensors: list[Any], op: Any) -> work.Work:
    """Prepare an all_reduce of each of *tensors*, which are of one dtype."""
    members = group_of(caller, group)
    _of_one_dtype(caller, group, "output", tensors)
    works = [
        calls.all_reduce(caller, members, tensor, tensor, *reduction_of(caller, group, op, tensor))
        for tensor in tensors
    ]
    return together(caller, members, works)


def gathered(caller: Caller, group: Any, outputs: Sequence[Any], inputs: list[Any]) -> work.Work:
    """Prepare an all_gather of each of *inputs* into *outputs*, which holds as many for each rank."""
    members = group_of(caller, group)
    if len(outputs) != members.size and members.rank >= 0:
        refuse(
            caller,
            group,
            ArgumentError(f"{{output}} must hold a list for each of {members.size} ranks, got {len(outputs)}"),
        )
    for place, tensors in enumerate(outputs):
        if len(list_of(caller, group, "output", tensors)) != len(inputs):
            refuse(
                caller,
                group,
                ArgumentError(
                    f"{{output}}[{place}] must hold as many tensors as {{input}}, got {len(tensors)} for {len(inputs)}"
                ),
            )
    works = [
        calls.all_gather(caller, members, outputs_of(caller, group, "output", list(column)), tensor)
        for column, tensor in zip(
            zip(*outputs, strict=True), inputs, strict=members.rank >= 0
        )  # outsiders may give none
    ]
    return together(caller, members, works)


def all_reduce_together(caller: Caller, group: Any, tensors: Any, op: Any, async_op: bool) -> Any:
    """Do what ``all_reduce_coalesced`` documents."""
    several = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    outputs = list_of(caller, group, "output", several)
    return _finish_in_future(caller, group, reduced(caller, group, outputs, op), async_op, outputs)


def all_gather_together(caller: Caller, group: Any, outputs: Any, inputs: Any, async_op: bool) -> Any:
    """Do what ``all_gather_coalesced`` documents."""
    tensors = list_of(caller, group, "input", inputs)
    _of_one_dtype(caller, group, "input", tensors)
    prepared = gathered(caller, group, list_of(caller, group, "output", outputs), tensors)
    return _finish_in_future(caller, group, prepared, async_op, outputs)


def _finish_in_future(caller: Caller, group: Any, prepared: work.Work, async_op: bool, outputs: list[Any]) -> Any:
    if not is_now(caller, group_of(caller, group), async_op):
        told(caller, group, future_class)  # before anything begins
    started = finish(prepared, async_op, outputs)
    return None if started is None else started.get_future()


def _of_one_dtype(caller: Caller, group: Any, role: str, tensors: list[Any]) -> None:
    """Refuse an empty list, and several dtypes."""
    if not tensors:
        refuse(caller, group, ArgumentError(f"{{{role}}} must hold at least one tensor, got an empty list"))
    dtypes = {str(tensor.dtype).rpartition(".")[2] for tensor in tensors if hasattr(tensor, "dtype")}
    if len(dtypes) > 1:
        refuse(caller, group, ArgumentError(f"{{{role}}} must hold tensors of one dtype, got {sorted(dtypes)}"))
