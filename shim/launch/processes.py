"""Ranks of a command: started together, watched, sent the launcher's signals, and ended when one of them fails."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from shim.launch.endings import COMMAND_GRACE, ENDING, NOTICE, first_to_fail, how_it_ended, signals_to
from shim.launch.identity import SETTABLE, Share, environment_of_share, new_job_key
from shim.launch.orders import SILENCE, Channel
from shim.launch.output import Failure, OutputClosed, RankOutput, tell, told_the_same, write_all
from shim.launch.rank_process import RankProcess

_STDERR = 2
_TO_MEET = 0.1  # seconds in which no new process can have met the others, and ended with them
_OWN_DESCRIPTORS = 16  # of this process, and for the start of one rank


@dataclass(frozen=True)
class Rules:
    """What happens to ranks when one of them fails, and where their output goes.

    The others are sent SIGTERM a second later, and SIGKILL after *grace* seconds, unless they are to *keep_going*; then all are started again,
    at most *max_restarts* times. Or that rank alone is started again, and the others go on, at most *replace* times; those that fail because
    another one did are started again too, and do not count. With *log_dir* their output also goes to files there.
    """

    log_dir: Path | None = None
    grace: float = COMMAND_GRACE
    keep_going: bool = False
    max_restarts: int = 0
    replace: int = 0


def descriptors_needed(size: int, log_dir: Path | None) -> int:
    """Return how many files ``run_ranks`` opens for *size* ranks, about."""
    return _OWN_DESCRIPTORS + size * (3 if log_dir is None else 5)


def run_ranks(
    command: Sequence[str],
    endpoints: Sequence[str],
    environment: Mapping[str, str] | None = None,
    rules: Rules = Rules(),  # it cannot be changed
) -> int:
    """Run *command* as a rank for each of *endpoints* until all have ended, and return the exit status for the launcher.

    That is 0 when all ranks ended with 0, else the first failing rank's, 128 and the signal's number for a death by
    signal. *environment* is added to this process's; of what the ranks are told it replaces what is ``SETTABLE``.
    Call it from the main thread, as it takes the signals.
    """
    return run_share(command, Share.all_of(len(endpoints)), new_job_key(), endpoints, environment, rules)


def run_share(
    command: Sequence[str],
    share: Share,
    run: str,
    endpoints: Sequence[str],
    environment: Mapping[str, str] | None = None,
    rules: Rules = Rules(),  # it cannot be changed
    channel: Channel | None = None,
) -> int:
    """Run the ranks of one host as ``run_ranks`` does all of them. The other hosts' have the same *run*.

    *endpoints* are those of all ranks, or nothing where they are not known. What comes by *channel* is obeyed, and a failure told there.
    """
    status = 0
    chosen = {name: value for name, value in (environment or {}).items() if name in SETTABLE}

    def start(restart: int, rank: int, replacements: int) -> RankProcess:
        most = rules.replace or rules.max_restarts
        told = environment_of_share(share, rank, run, endpoints, restart, most, environment) | chosen
        if replacements:
            told["TORCHELASTIC_RESTART_COUNT"] = str(replacements)
        return RankProcess(rank, command, told, rules.log_dir, "ab" if restart or replacements else "wb")

    for restart in range(rules.max_restarts + 1):
        ranks = _Ranks(share, rules, channel, partial(start, restart))
        status = _run_once(ranks)
        if not ranks.may_start_again or restart == rules.max_restarts:
            break
        with suppress(OutputClosed):
            _say(f"all ranks are started again (restart {restart + 1} of {rules.max_restarts})")
    return status


def _run_once(ranks: _Ranks) -> int:
    """Start the ranks, see all of them end, and return the launcher's exit status."""
    with ExitStack() as stack:
        signals = stack.enter_context(signals_to(ranks.take_signal))
        stack.callback(ranks.close)
        try:
            for rank in ranks.share.ranks:
                ranks.start(rank)
            ranks.watch(signals)
            return ranks.conclude()
        except OutputClosed as closed:
            ranks.end_all(signal.SIGKILL)
            if not closed.args:
                return 128 + signal.SIGPIPE
            return _give_up(f"what the ranks print cannot be written: {closed}")
        except _NotStartedError as error:
            return _give_up(str(error))


def _give_up(why: str) -> int:
    with suppress(OutputClosed):
        _say(why)
    return 1


def _say(text: str) -> None:
    write_all(_STDERR, f"shim run: {text}\n".encode())


class _NotStartedError(Exception):
    """A rank cannot be started."""


class _Ranks:
    """The ranks of one job on this host, and what has become of it."""

    def __init__(
        self, share: Share, rules: Rules, channel: Channel | None, start: Callable[[int, int], RankProcess]
    ) -> None:
        self.share = share
        self.may_start_again = False  # a rank has failed, and nobody asked for an end
        self._rules = rules
        self._channel = channel
        self._start = start  # a rank, which has been replaced so many times
        self._ranks: list[RankProcess] = []
        self._replacements = Counter[int]()  # of each rank
        self._started_again: dict[int, float] = {}  # and when
        self._failures = 0  # of ranks that were replaced, but for those that others had caused
        self._selector = selectors.DefaultSelector()
        self._received: list[int] = []
        self._told: dict[tuple[bytes, ...], int] = {}  # tracebacks that were shown at once, and by which rank
        self._term_at = float("inf")  # when the others are told to end
        self._kill_at = float("inf")
        self._are_killed = False

    def start(self, number: int) -> None:
        """Start a rank, which takes part from now on."""
        try:
            rank = self._start(number, self._replacements[number])
        except OSError as error:  # no more processes, memory or files
            raise _NotStartedError(f"rank {number} cannot be started: {error}") from None
        self._ranks.append(rank)
        if not self._replacements[number]:
            for received in self._received:
                rank.send(received)
        self._selector.register(rank.pidfd, selectors.EVENT_READ, partial(self._see_end, rank))
        for output in rank.outputs:
            self._selector.register(output.source, selectors.EVENT_READ, partial(self._pass_on, output))

    def take_signal(self, number: int, frame: FrameType | None = None) -> None:
        """Pass a signal on. The second that asks for an end starts the grace after which the ranks are killed."""
        del frame
        self._received.append(number)
        for rank in self._ranks:
            rank.send(number)
        if sum(received in ENDING for received in self._received) > 1:
            self._kill_at = min(self._kill_at, time.monotonic() + self._rules.grace)

    def watch(self, signals: int) -> None:
        """Pass on output and see ranks end, until all have."""
        self._selector.register(signals, selectors.EVENT_READ, partial(os.read, signals, 512))
        if self._channel is not None:
            self._selector.register(self._channel, selectors.EVENT_READ, self._obey)
            self._obey()  # what came with the first orders
        while any(rank.ended_at is None for rank in self._ranks):
            held_until = min(map(self._held_until, self._ranks))
            next_step = min(self._term_at, self._kill_at, held_until, self._alone_at())
            timeout = None if next_step == float("inf") else max(0.0, next_step - time.monotonic())
            for key, _ in self._selector.select(timeout):
                if self._selector.get_map().get(key.fd) is key:  # or it is of a rank that has just been replaced
                    key.data()
            if time.monotonic() >= held_until:
                self._show_held(time.monotonic())
            if time.monotonic() >= self._term_at:
                self._term_at = float("inf")
                self._kill_at = min(self._kill_at, time.monotonic() + self._rules.grace)
                self.end_all(signal.SIGTERM)
            if time.monotonic() >= self._alone_at():
                self._kill_at = 0.0
                _say(
                    f"nothing was heard for {SILENCE:.0f} s from who started this on {socket.gethostname()}; the ranks are killed"
                )
            if time.monotonic() >= self._kill_at:
                self._kill_at, self._are_killed = float("inf"), True
                self.end_all(signal.SIGKILL)

    def _alone_at(self) -> float:
        """Return when nobody gives orders any more, unless something is heard before."""
        if self._channel is None or self._are_killed:
            return float("inf")
        return self._channel.heard_at + SILENCE

    def _obey(self) -> None:
        """Do what was ordered. Where nobody is there any more to order anything, kill the ranks."""
        assert self._channel is not None
        messages = self._channel.read()
        if messages is None:
            self._selector.unregister(self._channel)
            self._kill_at = 0.0
        for message in messages or ():
            if "signal" in message:
                self.take_signal(message["signal"])
            elif "end" in message:
                self._term_at = min(self._term_at, time.monotonic())

    def _pass_on(self, output: RankOutput) -> None:
        if not output.pass_on():
            self._selector.unregister(output.source)

    def _see_end(self, rank: RankProcess) -> None:
        self._selector.unregister(rank.pidfd)
        rank.see_end()
        for output in rank.outputs:
            output.pass_on_rest()
        if rank.status and self._rules.keep_going:
            if not self._is_to_end():
                self._say_failed(rank, "the others go on")
        elif self._kill_at == self._term_at == float("inf"):
            if rank.status and self._may_replace(rank):
                self._replace(rank)
            elif rank.status:
                if self._rules.replace and not self._is_to_end():
                    self._say_failed(rank, f"it is not started again ({self._failures} of {self._rules.replace} were)")
                self._term_at = time.monotonic() + NOTICE
            elif late := self._too_late():
                _say(f"rank {late[0]} was started again as the others ended; it would find nobody, and is ended")
                self._term_at = time.monotonic() + NOTICE

    def _too_late(self) -> list[int]:
        """Return the ranks that run, where all of them were started again so late that those that have ended well cannot have met them."""
        ended = min((one.ended_at for one in self._ranks if one.status == 0 and one.ended_at), default=0.0)
        left = [one.rank for one in self._ranks if one.ended_at is None]
        return left if all(self._started_again.get(rank, 0.0) > ended - _TO_MEET for rank in left) else []

    def _say_failed(self, rank: RankProcess, consequence: str) -> None:
        """Show what a rank that failed has held back, and say what comes of it."""
        output, told_by = rank.outputs[-1], rank.rank
        if output.holds_last_lines:
            told_by = self._told.setdefault(rank.last_words, told_by)
        output.show_held(but_last_lines=told_by != rank.rank)
        where = "" if told_by == rank.rank else f", with the traceback of rank {told_by}"
        _say(f"rank {rank.rank} {how_it_ended(rank.status or 0)}{where}; {consequence}")

    def _may_replace(self, rank: RankProcess) -> bool:
        others = self._replacements.total() - self._failures  # that have failed because of a rank, of whatever host
        is_within = (
            others < self._rules.replace * self.share.size if rank.is_victim else self._failures < self._rules.replace
        )
        are_all_there = all(other.status != 0 for other in self._ranks)  # those that have ended meet nobody any more
        return is_within and are_all_there and not self._is_to_end()

    def _replace(self, rank: RankProcess) -> None:
        """Start a rank that failed again; what it had started itself is killed."""
        self._failures += not rank.is_victim
        self._replacements[rank.rank] += 1
        count = "because another one failed" if rank.is_victim else f"{self._failures} of {self._rules.replace}"
        self._say_failed(rank, f"it is started again ({count})")
        rank.send(signal.SIGKILL)
        for output in rank.outputs:
            with suppress(KeyError):  # its end has been seen
                self._selector.unregister(output.source)
        self._ranks.remove(rank)
        rank.close()
        self.start(rank.rank)
        self._started_again[rank.rank] = time.monotonic()

    def _held_until(self, rank: RankProcess) -> float:
        """Return when to show what is held back of *rank*; where it failed, that waits until all have ended."""
        return float("inf") if rank.status else rank.outputs[-1].held_until

    def _show_held(self, until: float) -> None:
        for rank in self._ranks:
            if self._held_until(rank) <= until:
                rank.outputs[-1].show_held()

    def _show_tracebacks(self, told: RankProcess | None) -> None:
        """Show each traceback that is held back once; that of the rank *told* is shown with its failure."""
        by_words: dict[tuple[bytes, ...], list[RankProcess]] = {}
        for rank in self._ranks:
            by_words.setdefault(rank.last_words, []).append(rank)
        for words, ranks in by_words.items():
            holding = [rank for rank in ranks if rank.outputs[-1].holds_last_lines]
            same = holding if told is not None and words == told.last_words else holding[1:]
            for rank in ranks:
                rank.outputs[-1].show_held(but_last_lines=rank in same)
            if same is not holding:
                write_all(_STDERR, told_the_same([rank.rank for rank in same]))

    def _is_to_end(self) -> bool:
        return any(number in ENDING for number in self._received)

    def end_all(self, number: int) -> None:
        for rank in self._ranks:
            rank.was_told_to_end |= rank.ended_at is None
            rank.send(number)

    def conclude(self) -> int:
        """Say which rank failed first, and return the launcher's exit status."""
        first = first_to_fail(self._ranks)
        failure = None
        if first is not None:
            self.end_all(signal.SIGKILL)  # what the ranks themselves had started
            if not self._is_to_end():
                self.may_start_again = True
                failure = self._failure_of(first)
        self._show_tracebacks(None if failure is None or failure.is_alone else first)
        status = 0 if first is None else first.status or 0
        status = failure.status if failure is not None else status
        status = 128 - status if status < 0 else status
        if self._channel is not None:
            self._channel.say_end(status, failure)
        elif failure is not None:
            tell(failure)
        return status

    def _failure_of(self, first: RankProcess) -> Failure:
        """Return what is to be told of the rank that failed *first*, and of those that have told the same."""
        same = [rank.rank for rank in self._ranks if rank is not first and rank.last_words == first.last_words != ()]
        return Failure(
            first.rank,
            1 if first.was_told_to_end else first.status or 0,  # it was about to end with its traceback
            [line.decode(errors="surrogateescape") for line in first.outputs[-1].last_lines],
            same,
            self.share.size == 1,
            first.is_victim,
            first.was_told_to_end and not first.has_raised,
        )

    def close(self) -> None:
        """End what is left, and reap all."""
        if any(rank.ended_at is None for rank in self._ranks):
            self.end_all(signal.SIGKILL)
        for rank in self._ranks:
            rank.close()
        self._selector.close()
