"""One function per row of the table: hand the call to the group's engine and return the prepared Work. (``received`` is a second
one of ``receive``, for who needs to know at once who has sent, and nothing else.)

Each takes the ``Caller`` whose words errors are told in, the group, the tensors, and what the collective needs;
ranks are group ranks. Tensors, split sizes and *whole* are as ``engines.base.Engine`` describes. When the arguments of
one rank are wrong, that rank raises at once, and the others, who are waiting for it, get a MismatchError. That is so for whatever
is raised, Ctrl-C too, hence the broad excepts: else the others would take that rank's next call for this one.

``now`` says that the caller is going to wait for the Work and do nothing before: it is carried out before the function returns
``ENDED``, for which nothing is made that outlives the call. The functions are alike, and none calls a common one, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from shim.core.callers import Caller, warn_user
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import ABSENT, ENDED, Work
from shim.errors import (
    DeviceTensorError,
    EngineError,
    MismatchError,
    NotMemberError,
    OutOfMemoryError,
    ShimError,
    StateError,
    TensorError,
)

if TYPE_CHECKING:
    from shim.core.engines.base import Splits

_ReduceUnreadable = Callable[[Caller, ProcessGroup, Any, ReduceOp, bool], "Work | None"]


TOLD = "_shim_is_told"  # an attribute of errors of which the other ranks know already, or need not know


def broadcast(caller: Caller, group: ProcessGroup, tensor: Any, root: int, now: bool = False) -> Work:
    """Copy *root*'s *tensor* into every rank's *tensor*."""
    try:
        operation = group.engine.broadcast(tensor, root, now)
    except BaseException as error:
        return _elsewhere(caller, group, error, lambda engine, *call: engine.broadcast(*call), tensor, root, now)
    return ENDED if operation is None else Work(caller, group, operation)


def all_reduce(
    caller: Caller,
    group: ProcessGroup,
    output: Any,
    input: Any,
    op: ReduceOp,
    factor: float = 1.0,
    now: bool = False,
    reduce_unreadable: _ReduceUnreadable | None = None,
) -> Work:
    """Combine all ranks' *input* by *op* into every rank's *output*, which may be the same tensor.

    What the engine cannot read is given to *reduce_unreadable*, with *op* and *now*: it returns a Work, or None for what it does not take either.
    """
    try:
        operation = group.engine.all_reduce(output, input, op, factor, now)
    except BaseException as error:
        if reduce_unreadable is not None and isinstance(error, TensorError):
            work = reduce_unreadable(caller, group, output, op, now)
            if work is not None:
                return work
        return _elsewhere(
            caller, group, error, lambda engine, *call: engine.all_reduce(*call), output, input, op, factor, now
        )
    return ENDED if operation is None else Work(caller, group, operation)


def reduce(
    caller: Caller,
    group: ProcessGroup,
    output: Any,
    input: Any,
    op: ReduceOp,
    root: int,
    factor: float = 1.0,
    now: bool = False,
) -> Work:
    """Combine all ranks' *input* by *op* into *root*'s *output*; other ranks' tensors are left as they are."""
    try:
        operation = group.engine.reduce(output, input, op, root, factor, now)
    except BaseException as error:
        return _elsewhere(
            caller, group, error, lambda engine, *call: engine.reduce(*call), output, input, op, root, factor, now
        )
    return ENDED if operation is None else Work(caller, group, operation)


def all_gather(
    caller: Caller,
    group: ProcessGroup,
    outputs: Any,
    input: Any,
    output_splits: Splits = None,
    now: bool = False,
    whole: bool = False,
) -> Work:
    """Copy every rank's *input* into its part of every rank's *outputs*."""
    try:
        operation = group.engine.all_gather(outputs, input, output_splits, now, whole)
    except BaseException as error:
        return _elsewhere(
            caller,
            group,
            error,
            lambda engine, *call: engine.all_gather(*call),
            outputs,
            input,
            output_splits,
            now,
            whole,
        )
    return ENDED if operation is None else Work(caller, group, operation)


def gather(
    caller: Caller,
    group: ProcessGroup,
    outputs: Any,
    input: Any,
    root: int,
    output_splits: Splits = None,
    now: bool = False,
) -> Work:
    """Copy every rank's *input* into its part of *root*'s *outputs*; elsewhere *outputs* is not read."""
    try:
        operation = group.engine.gather(outputs, input, root, output_splits, now)
    except BaseException as error:
        return _elsewhere(
            caller, group, error, lambda engine, *call: engine.gather(*call), outputs, input, root, output_splits, now
        )
    return ENDED if operation is None else Work(caller, group, operation)


def scatter(
    caller: Caller,
    group: ProcessGroup,
    output: Any,
    inputs: Any,
    root: int,
    input_splits: Splits = None,
    now: bool = False,
) -> Work:
    """Copy each rank's part of *root*'s *inputs* into its *output*; elsewhere *inputs* is not read."""
    try:
        operation = group.engine.scatter(output, inputs, root, input_splits, now)
    except BaseException as error:
        return _elsewhere(
            caller, group, error, lambda engine, *call: engine.scatter(*call), output, inputs, root, input_splits, now
        )
    return ENDED if operation is None else Work(caller, group, operation)


def reduce_scatter(
    caller: Caller,
    group: ProcessGroup,
    output: Any,
    inputs: Any,
    op: ReduceOp,
    factor: float = 1.0,
    input_splits: Splits = None,
    now: bool = False,
    whole: bool = False,
) -> Work:
    """Combine all ranks' *inputs* by *op* and give each rank its part in *output*."""
    try:
        operation = group.engine.reduce_scatter(output, inputs, op, factor, input_splits, now, whole)
    except BaseException as error:
        return _elsewhere(
            caller,
            group,
            error,
            lambda engine, *call: engine.reduce_scatter(*call),
            output,
            inputs,
            op,
            factor,
            input_splits,
            now,
            whole,
        )
    return ENDED if operation is None else Work(caller, group, operation)


def all_to_all(
    caller: Caller,
    group: ProcessGroup,
    outputs: Any,
    inputs: Any,
    output_splits: Splits = None,
    input_splits: Splits = None,
    now: bool = False,
    whole: bool = False,
) -> Work:
    """Copy part *j* of rank *i*'s *inputs* into part *i* of rank *j*'s *outputs*."""
    try:
        operation = group.engine.all_to_all(outputs, inputs, output_splits, input_splits, now, whole)
    except BaseException as error:
        return _elsewhere(
            caller,
            group,
            error,
            lambda engine, *call: engine.all_to_all(*call),
            outputs,
            inputs,
            output_splits,
            input_splits,
            now,
            whole,
        )
    return ENDED if operation is None else Work(caller, group, operation)


def barrier(caller: Caller, group: ProcessGroup, now: bool = False, before: str = "") -> Work:
    """Wait until every rank has called this.

    Before the ranks agree on something by themselves, *before* names it, with the same text on all ranks, so that it matches no call of the user's.
    """
    try:
        operation = group.engine.barrier(now, before)
    except BaseException as error:
        return refused(caller, group, error)
    return ENDED if operation is None else Work(caller, group, operation)


def send(caller: Caller, group: ProcessGroup, tensor: Any, peer: int, tag: int = 0, now: bool = False) -> Work:
    """Send *tensor* to *peer*, where a receive with the same *tag* takes it."""
    try:
        operation = group.engine.send(tensor, peer, tag, now)
    except NotMemberError as error:
        return refused(caller, group, error)
    except ShimError as error:
        operation = _message_elsewhere(
            caller, group, error, lambda engine, *call: engine.send(*call), tensor, peer, tag, now
        )
    return ENDED if operation is None else Work(caller, group, operation)


def receive(
    caller: Caller, group: ProcessGroup, tensor: Any, peer: int | None, tag: int = 0, now: bool = False
) -> Work:
    """Write the next message with *tag* of *peer*, or of any rank when *peer* is None, into *tensor*."""
    try:
        operation = group.engine.receive(tensor, peer, tag, now)
    except NotMemberError as error:
        return refused(caller, group, error)
    except ShimError as error:
        operation = _message_elsewhere(
            caller, group, error, lambda engine, *call: engine.receive(*call), tensor, peer, tag, now
        )
    return ENDED if isinstance(operation, int) else Work(caller, group, operation)


def received(caller: Caller, group: ProcessGroup, tensor: Any, peer: int | None, tag: int) -> int:
    """Receive at once, as ``receive`` does, and return the group rank that has sent, -1 outside the group."""
    try:
        return group.engine.receive(tensor, peer, tag, True)  # type: ignore[return-value]  # carried out now
    except NotMemberError as error:
        refused(caller, group, error)
        return -1
    except ShimError as error:
        sender: int = _message_elsewhere(
            caller, group, error, lambda engine, *call: engine.receive(*call), tensor, peer, tag, True
        )
        return sender


_Method = Callable[..., Any]  # of an engine, which is its first argument, with the arguments of a call


def _elsewhere(caller: Caller, group: ProcessGroup, error: BaseException, method: _Method, *call: Any) -> Work:
    """Have the engine of a device carry out the call that the group's engine ended with *error*, as a tensor is there.

    *method* is given that engine: a function that the collective's own variables need not outlive, which would slow down every
    call. Another *error*, and one of a device that nobody serves, is raised as ``refused`` does.
    """
    try:
        if not isinstance(error, DeviceTensorError):
            return refused(caller, group, error)
        try:
            operation = method(group.engine_for(error), *call)
        except BaseException as other:
            return refused(caller, group, other)
        return ENDED if operation is None else Work(caller, group, operation)
    finally:
        del error  # as refuse does


def _message_elsewhere(caller: Caller, group: ProcessGroup, error: ShimError, method: _Method, *call: Any) -> Any:
    """Do the same for a message, of which the other ranks are told nothing, and return what the engine returns."""
    try:
        if not isinstance(error, DeviceTensorError):
            raise error
        return method(group.engine_for(error), *call)
    except ShimError as raised:
        raise caller.explain(raised, group) from None
    finally:
        del error


def refuse(caller: Caller, group: ProcessGroup, error: BaseException) -> NoReturn:
    """Raise *error*, in the caller's words if it is ours, after telling the other ranks of *group* that this rank's call failed."""
    raised: BaseException = error
    is_told = getattr(error, TOLD, False)
    try:
        if not isinstance(error, ShimError):
            if not is_told:
                tell(group, f"{caller.function}: {error!r}")
            raise error
        raised = caller.explain(error, group)
        if not is_told and not isinstance(error, StateError):
            tell(group, str(raised))
        raise raised from None
    finally:
        del error, raised  # their tracebacks hold this frame: the circle would keep the call's tensors


def tell(group: ProcessGroup, reason: str) -> None:
    """Tell the other ranks of *group*, which may be gone, that this rank's call failed, and why."""
    if group.is_alive:
        group.engine.refuse(reason)


def refused(caller: Caller, group: ProcessGroup, error: BaseException) -> Work:
    """Raise *error*, with which the engine ended the call, telling the other ranks unless they were in it too.

    What is none of ours was raised by an argument's own methods, or by Ctrl-C: while they were read, or when the operation had been
    begun, which the others know then.
    For a process outside the group, whose caller asks for a warning instead, return what does nothing.
    """
    if isinstance(error, NotMemberError) and caller.outsider == "warn":
        warn_user(str(caller.explain(error, group)))
        return ABSENT
    try:
        if isinstance(error, (MismatchError, EngineError, OutOfMemoryError)):
            raise caller.explain(error, group) from None
        if not isinstance(error, ShimError) and _was_begun():
            raise error
        refuse(caller, group, error)
    finally:
        del error  # as refuse does


def _was_begun() -> bool:
    from shim._native import call_was_begun  # here, as core can be imported without the native module

    return call_was_begun()
