"""The barrier that tells which ranks have not come: rank 0 hears from all others and answers each of them.

It is made of messages, beside the order of the collectives, so that a rank that does not come leaves the group usable.
Each other rank sends one token to rank 0, and reads one answer; rank 0 answers those that have not come, too. Who
stops waiting for a message remembers to skip it when it comes late.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from shim.core import calls, groups, work
from shim.core.callers import Caller
from shim.errors import CollectiveTimeoutError, MismatchError, PeerLostError, ShimError
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._options import barrier_seconds_of

__all__ = ["monitored"]

_TAG = -(2**31)  # of its messages, out of the way of the user's
_TEXT_BYTES = 512  # of a message, whose text says why the barrier failed and is empty when it did not
_SHORTEST = 1e-4  # seconds

_late: WeakKeyDictionary[groups.ProcessGroup, Counter[int]] = WeakKeyDictionary()  # messages to skip, by sender


def monitored(caller: Caller, group: Any, timeout: Any, wait_all_ranks: bool, stacklevel: int = 3) -> None:
    """Wait for every rank, at most *timeout*; rank 0 stops at the first that fails unless *wait_all_ranks*."""
    members = group_of(caller, group)
    if not members.is_alive:
        calls.barrier(caller, members)  # which warns outside the group and raises after its end
        return
    if isinstance(timeout, float):
        warnings.warn(
            f"{caller.function}: timeout should be a datetime.timedelta; {timeout} is taken as seconds",
            UserWarning,
            stacklevel=stacklevel,
        )
        timeout = timedelta(seconds=timeout)
    try:
        seconds = barrier_seconds_of(caller, timeout)
    except ShimError as error:
        _give_up(caller, members, str(error))
        raise
    end = time.monotonic() + (members.timeout if seconds < 0 else seconds)
    if members.rank == 0:
        _hear_all(caller, members, end, wait_all_ranks)
    else:
        _report(caller, members, end)


def _hear_all(caller: Caller, members: groups.ProcessGroup, end: float, wait_all_ranks: bool) -> None:
    """Be rank 0: hear from every other rank, answer all of them, and raise for those that failed."""
    failures: dict[int, ShimError] = {}
    for rank in range(1, members.size):
        if failures and not wait_all_ranks:
            _skip_next(members, rank)
            continue
        try:
            reason = _hear(caller, members, rank, end)
        except (CollectiveTimeoutError, PeerLostError) as error:
            failures[rank] = error
        else:
            if reason:
                failures[rank] = MismatchError(reason)
    failure = _summary(failures)
    text = "" if failure is None else str(failure)
    answers = {
        rank: _tell(caller, members, rank, text)
        for rank in range(1, members.size)
        if not isinstance(failures.get(rank), PeerLostError)
    }
    for rank, answer in answers.items():
        if rank not in failures:
            answer.wait(_until(end))
    if failure is not None:
        raise caller.explain(failure, members)


def _report(caller: Caller, members: groups.ProcessGroup, end: float) -> None:
    """Be another rank: tell rank 0 and wait for its answer."""
    token = _tell(caller, members, 0, "")
    try:
        reason = _hear(caller, members, 0, end)
    except CollectiveTimeoutError:
        error = _failure(CollectiveTimeoutError, "rank 0 has not come, or waits for another rank", [0])
        raise caller.explain(error, members) from None
    token.wait(_until(end))
    if reason:
        raise caller.explain(MismatchError(reason), members)


def _give_up(caller: Caller, members: groups.ProcessGroup, reason: str) -> None:
    """Tell the ranks that wait for this one why it does not come."""
    for rank in range(1, members.size) if members.rank == 0 else [0]:
        _tell(caller, members, rank, reason)
        _skip_next(members, rank)


def _summary(failures: dict[int, ShimError]) -> ShimError | None:
    """Return one error for all *failures* of group ranks, None when there are none."""
    if not failures:
        return None
    for error in failures.values():
        if isinstance(error, MismatchError):
            return error
    lost = all(isinstance(error, PeerLostError) for error in failures.values())
    named = ", ".join(map(str, failures))
    what = f"group rank {named} has not come" if len(failures) == 1 else f"group ranks {named} have not come"
    return _failure(PeerLostError if lost else CollectiveTimeoutError, what, list(failures))


def _failure(
    kind: type[PeerLostError] | type[CollectiveTimeoutError], what: str, ranks: list[int]
) -> PeerLostError | CollectiveTimeoutError:
    error = kind(what)
    error.ranks = tuple(ranks)
    return error


def _tell(caller: Caller, members: groups.ProcessGroup, rank: int, text: str) -> work.Work:
    """Send *text*, cut to what fits; as long as the work is kept, it gets there."""
    message = bytearray(_TEXT_BYTES)
    packed = text.encode()[:_TEXT_BYTES].decode(errors="ignore").encode()
    message[: len(packed)] = packed
    sent = calls.send(caller, members, message, rank, _TAG)
    sent.start()
    return sent


def _hear(caller: Caller, members: groups.ProcessGroup, rank: int, end: float) -> str:
    """Return the text *rank* sends; when none comes until *end*, the next one is skipped."""
    late = _late.setdefault(members, Counter())
    message = bytearray(_TEXT_BYTES)
    try:
        while late[rank] >= 0:
            calls.receive(caller, members, message, rank, _TAG).wait(_until(end))
            late[rank] -= 1
    finally:
        late[rank] += 1  # what was waited for is still to come, or was not to be skipped
    return message.rstrip(b"\0").decode()


def _skip_next(members: groups.ProcessGroup, rank: int) -> None:
    _late.setdefault(members, Counter())[rank] += 1


def _until(end: float) -> float:
    return max(end - time.monotonic(), _SHORTEST)
