"""The barrier that tells which ranks have not come: rank 0 hears from all others and answers each of them.

It is made of messages, beside the order of the collectives, so that a rank that does not come leaves the group usable.
Each other rank sends one token to rank 0, and reads one answer; rank 0 answers those that have not come, too. Who
stops waiting for a message leaves its receive posted, and skips what that gets when it comes late.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from datetime import timedelta
from typing import Any, NamedTuple

from shim.core import calls, work
from shim.core.callers import Caller
from shim.errors import CollectiveTimeoutError, MismatchError, PeerLostError, ShimError
from shim.frontends.torch.distributed._groups import ProcessGroup, group_of, view_of
from shim.frontends.torch.distributed._options import barrier_seconds_of

__all__ = ["monitored"]

_TAG = -(2**31)  # of its messages, out of the way of the user's
_TEXT_BYTES = 512  # of a message, whose text says why the barrier failed and is empty when it did not
_SHORTEST = 1e-4  # seconds


def monitored(caller: Caller, group: Any, timeout: Any, wait_all_ranks: bool, stacklevel: int = 3) -> None:
    """Wait for every rank, at most *timeout*; rank 0 stops at the first that fails unless *wait_all_ranks*."""
    members = group_of(caller, group)
    if not members.is_alive:
        calls.barrier(caller, members)  # which warns outside the group and raises after its end
        return
    peers = _Peers(caller, view_of(caller, group))
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
        _give_up(peers, str(error))
        raise
    end = time.monotonic() + (members.timeout if seconds < 0 else seconds)
    if members.rank == 0:
        _hear_all(peers, end, wait_all_ranks)
    else:
        _report(peers, end)


class _Peers:
    """The other ranks of a group, and the receives that were posted for what they have not sent yet."""

    def __init__(self, caller: Caller, view: ProcessGroup) -> None:
        self.caller = caller
        self.members = view.core
        self._posted: dict[int, deque[_Receive]] = getattr(view, "_posted", None) or {}
        view._posted = self._posted

    def tell(self, rank: int, text: str) -> work.Work:
        """Send *text*, cut to what fits; as long as the work is kept, it gets there."""
        message = bytearray(_TEXT_BYTES)
        packed = text.encode()[:_TEXT_BYTES].decode(errors="ignore").encode()
        message[: len(packed)] = packed
        sent = calls.send(self.caller, self.members, message, rank, _TAG)
        sent.start()
        return sent

    def expect(self, rank: int) -> deque[_Receive]:
        """Post a receive of *rank*'s next message, and return it after those that are to be skipped."""
        message = bytearray(_TEXT_BYTES)
        receive = calls.receive(self.caller, self.members, message, rank, _TAG)
        receive.start()
        posted = self._posted.setdefault(rank, deque())
        posted.append(_Receive(receive, message))
        return posted

    def hear(self, rank: int, end: float) -> str:
        """Return the text *rank* sends; when none comes until *end*, the next one is skipped."""
        posted = self.expect(rank)
        while True:
            receive = posted[0]
            receive.work.wait(_until(end))
            posted.popleft()
            if not posted:
                return receive.message.rstrip(b"\0").decode()


class _Receive(NamedTuple):
    work: work.Work
    message: bytearray


def _hear_all(peers: _Peers, end: float, wait_all_ranks: bool) -> None:
    """Be rank 0: hear from every other rank, answer all of them, and raise for those that failed."""
    failures: dict[int, ShimError] = {}
    others = range(1, peers.members.size)
    for rank in others:
        if failures and not wait_all_ranks:
            peers.expect(rank)
            continue
        try:
            reason = peers.hear(rank, end)
        except (CollectiveTimeoutError, PeerLostError) as error:
            failures[rank] = error
        else:
            if reason:
                failures[rank] = MismatchError(reason)
    failure = _summary(failures)
    text = "" if failure is None else str(failure)
    answers = {rank: peers.tell(rank, text) for rank in others if not isinstance(failures.get(rank), PeerLostError)}
    for rank, answer in answers.items():
        if rank not in failures:
            answer.wait(_until(end))
    if failure is not None:
        raise peers.caller.explain(failure, peers.members)


def _report(peers: _Peers, end: float) -> None:
    """Be another rank: tell rank 0 and wait for its answer."""
    token = peers.tell(0, "")
    try:
        reason = peers.hear(0, end)
    except CollectiveTimeoutError:
        error = _failure(CollectiveTimeoutError, "rank 0 has not come, or waits for another rank", [0])
        raise peers.caller.explain(error, peers.members) from None
    token.wait(_until(end))
    if reason:
        raise peers.caller.explain(MismatchError(reason), peers.members)


def _give_up(peers: _Peers, reason: str) -> None:
    """Tell the ranks that wait for this one why it does not come."""
    for rank in range(1, peers.members.size) if peers.members.rank == 0 else [0]:
        peers.tell(rank, reason)
        peers.expect(rank)


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


def _until(end: float) -> float:
    return max(end - time.monotonic(), _SHORTEST)
