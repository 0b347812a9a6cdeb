"""One rank of a replay: ``python -m shim.trace.replaying.rank FOLDER ...``, as ``shim trace replay`` starts it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tracing.layout import State
from shim.errors import EngineError, ShimError
from shim.trace.calls import Call, Group, RankRecording, Recording
from shim.trace.replaying.plan import MadeUp, Step, cut_group, steps_of


@dataclass
class RankOutcome:
    """``reproduced`` are the calls that failed as they are recorded to have: line, class of error, text; ``different`` those that did not end so."""

    rank: int
    calls: int = 0
    seconds: float = 0.0
    reproduced: list[tuple[str, str, str]] = field(default_factory=list)
    different: list[tuple[str, str]] = field(default_factory=list)

    def differ(self, call: Call, failure: ShimError | None) -> bool:
        """Note that *call* ended otherwise than recorded. The replay ends with it."""
        recorded = "ended" if call.end is not None else "did not end"
        if call.failure is not None:
            recorded = f"raised {call.failure.kind}"
        now = "ended" if failure is None else f"raised {type(failure).__name__}: {failure}"
        self.different.append((call.line(), f"in the recording it {recorded}; in the replay it {now}"))
        return False

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    @staticmethod
    def of(told: dict[str, Any]) -> RankOutcome:
        """Return what ``told`` told."""
        return RankOutcome(
            told["rank"],
            told["calls"],
            told["seconds"],
            [(line, kind, text) for line, kind, text in told["reproduced"]],
            [(line, what) for line, what in told["different"]],
        )


_ME = Caller("shim trace replay")
_LINE = re.compile(r"(.*):(\d+)(?: in (.*))?$", re.DOTALL)
_TO_MEET = 60.0  # seconds at least, as processes of a busy machine do not begin at once
_MOST_LINES = 1_000_000  # of a program's file


def replay_rank(
    recording: Recording, rank: int, size: int, timeout: float, pauses: bool, told: Callable[[RankOutcome], object]
) -> None:
    """Make the calls of *rank* on a world of *size* ranks, which all call this, and give what became of them to *told*."""
    _forget_interrupts(recording)
    mine = recording.ranks[rank]
    replay = _Replay(mine, size, timeout)
    began = time.monotonic()
    world = groups.enter_world(_ME, "trace", rank=rank, world_size=size, timeout=max(timeout, _TO_MEET))
    groups.set_timeout(world, timeout)
    try:
        steps = steps_of(mine, size)
        for step, before in zip(steps, [None, *steps], strict=False):
            if pauses and before is not None and before.ended and step.time > before.ended:
                time.sleep(min((step.time - before.ended) / 1e9, timeout))
            if not replay.take(step):
                break
        replay.finish()
        replay.outcome.seconds = time.monotonic() - began
        told(replay.outcome)
        _leave_as_recorded(recording, mine, timeout)
    finally:
        groups.close_world()


def _forget_interrupts(recording: Recording) -> None:
    """Have calls that Ctrl-C ended go on for ever, and no rank end on its own, as it was before that."""
    if not any(call.is_interrupted for call in recording.calls):
        return
    for rank in recording.ranks.values():
        rank.has_ended = False
        rank.calls = [
            replace(call, state=State.RUNNING, end=None, failure=None) if call.is_interrupted else call
            for call in rank.calls
        ]


def _leave_as_recorded(recording: Recording, mine: RankRecording, timeout: float) -> None:
    """Do what the others met if this rank's program was killed between its calls: die if they noticed, else stay away until they give up."""
    if mine.has_ended or not mine.calls or any(call.is_open for call in mine.calls):
        return
    if recording.is_of_dumps and not any(call.is_open for call in recording.calls):
        return
    failures = {call.failure.kind for call in recording.calls if call.failure is not None}
    if "PeerLostError" in failures:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(timeout + 1)


class _Replay:
    """The state of a rank between its steps."""

    def __init__(self, rank: RankRecording, size: int, timeout: float) -> None:
        self.outcome = RankOutcome(rank.rank)
        self._rank = rank.rank
        self._size = size
        self._timeout = timeout
        self._tensors = MadeUp(size)
        self._groups: dict[tuple[str, int], ProcessGroup] = {}
        self._works: dict[int, tuple[Call, Any]] = {}  # those that were started, by the index of their call

    def take(self, step: Step) -> bool:
        """Take *step*, and return whether the replay can go on."""
        if step.group is not None:
            self._make_group(step.group)
            return True
        assert step.call is not None
        failure: ShimError | None = None
        try:
            self._carry_out(step)
        except ShimError as error:
            failure = error
        return self._judge(step, failure)

    def finish(self) -> None:
        """Wait for what was started and never waited for. What becomes of it is told unless the recording does not know either."""
        for call, work in self._works.values():
            try:
                work.wait(self._timeout)
            except ShimError as error:
                if call.end is None:
                    self.outcome.reproduced.append((call.line(), type(error).__name__, str(error)))
                else:
                    self.outcome.differ(call, error)
            self.outcome.calls += 1

    def _make_group(self, group: Group) -> None:
        if group.is_world:
            self._groups[group.identity] = groups.world(_ME)
            return
        if (old := groups.find_group(group.name)) is not None and old is not groups.world(_ME):
            groups.close_group(old)
        ranks = cut_group(group.ranks, self._size)
        self._groups[group.identity] = groups.new_group(_ME, ranks, name=group.name, timeout=self._timeout)

    def _carry_out(self, step: Step) -> None:
        call = step.call
        assert call is not None
        engine = self._groups[call.shape.group.identity].engine
        source = call.shape.source
        if step.what == "wait":
            call_from(source, partial(self._works.pop(call.index)[1].wait))
        elif step.what == "refuse":
            assert call.failure is not None
            call_from(source, partial(engine.refuse, call.failure.text))
        else:
            how: dict[str, Any] = {"now": step.what == "call"}
            if call.shape.whole and len(cut_group(call.shape.group.ranks, self._size)) == len(call.shape.group.ranks):
                how["whole"] = True
            if call.shape.before:
                how["before"] = call.shape.before
            prepared = partial(getattr(engine, call.shape.collective), *self._arguments(call), **how)
            work = call_from(source, prepared)
            if step.what == "start":
                self._works[call.index] = call, work
                call_from(source, work.start)

    def _arguments(self, call: Call) -> tuple[Any, ...]:
        shape = call.shape
        outputs, inputs = self._tensors.tensors(shape, "outputs"), self._tensors.tensors(shape, "inputs")
        kept = cut_group(shape.group.ranks, self._size)
        is_cut = len(kept) < len(shape.group.ranks)
        output_splits, input_splits = (None, None) if is_cut else (shape.output_splits, shape.input_splits)
        root = kept.index(shape.root) if shape.root in kept else 0
        op = ReduceOp[shape.op or "SUM"]  # dumps of torch do not tell it
        if shape.root not in kept and self._rank == kept[0]:  # it is root instead
            if shape.collective == "reduce":
                outputs = self._tensors.tensors(replace(shape, outputs=shape.inputs), "outputs")
            elif shape.collective == "gather":
                outputs = [inputs] * len(kept)
            elif shape.collective == "scatter":
                inputs = [outputs] * len(kept)
        arguments: dict[str, Any] = {
            "broadcast": (inputs if outputs is None else outputs, root),
            "all_reduce": (outputs, inputs, op, shape.factor),
            "reduce": (outputs, inputs, op, root, shape.factor),
            "all_gather": (outputs, inputs, output_splits),
            "gather": (outputs, inputs, root, output_splits),
            "scatter": (outputs, inputs, root, input_splits),
            "reduce_scatter": (outputs, inputs, op, shape.factor, input_splits),
            "all_to_all": (outputs, inputs, output_splits, input_splits),
            "barrier": (),
            "send": (inputs, self._peer(kept, shape.peer), shape.tag),
            "receive": (outputs, self._peer(kept, shape.peer), shape.tag),
        }
        return tuple(arguments[shape.collective])

    @staticmethod
    def _peer(kept: tuple[int, ...], peer: Any) -> int | None:
        return kept.index(peer) if peer in kept else None

    def _judge(self, step: Step, failure: ShimError | None) -> bool:
        """Compare how a call ended with how it is recorded to have."""
        call = step.call
        assert call is not None
        if step.what in ("start", "refuse"):
            return failure is None or self.outcome.differ(call, failure)
        self.outcome.calls += 1
        is_open = call.end is None
        if failure is None and not is_open and call.failure is None:
            return True
        if failure is None:
            return self.outcome.differ(call, None)
        expected = "CollectiveTimeoutError" if is_open else call.failure.kind if call.failure else ""
        if type(failure).__name__ != expected:
            return self.outcome.differ(call, failure)
        self.outcome.reproduced.append((call.line(), type(failure).__name__, str(failure)))
        return not isinstance(failure, EngineError)


def call_from(source: str, function: Callable[[], Any]) -> Any:
    """Return what *function*, one of C, returns when it is called from the line *source*: "/home/me/train.py:12 in step"."""
    return _caller_at(source)(function)


@cache
def _caller_at(source: str) -> Callable[[Callable[[], Any]], Any]:
    found = _LINE.fullmatch(source)
    file, line, name = (found[1], int(found[2]), found[3] or "<module>") if found else ("", 1, "")
    text = "\n" * (min(line, _MOST_LINES) - 1) + "def caller(function): return function()"
    # Code of core counts as no line of a program.
    names: dict[str, Any] = {"__name__": "__main__" if found else "shim.core"}
    exec(compile(text, file or "replay", "exec"), names)
    caller: Any = names["caller"]
    caller.__code__ = caller.__code__.replace(co_name=name or "replay")
    return caller  # type: ignore[no-any-return]


def main() -> None:
    """Replay the rank that this process is, and write its outcome to the folder given."""
    from shim.core.job.rendezvous import locate
    from shim.trace.flight_recorder import is_dump_folder, read_dumps
    from shim.trace.reading import read_recording

    folder, run, size, timeout, pauses, answers = sys.argv[1:]
    path = Path(folder)
    recording = read_dumps(path) if is_dump_folder(path) else read_recording(path, int(run))
    rank = locate().rank
    answer = Path(answers) / f"rank{rank}.json"

    def tell(outcome: RankOutcome) -> None:
        answer.write_text(json.dumps(outcome.told()))

    replay_rank(recording, rank, int(size), float(timeout), pauses == "1", tell)


if __name__ == "__main__":
    main()
