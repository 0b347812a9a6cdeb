"""One run: all contenders of a number of ranks are started, and take short turns in an order that changes, round after round.

A turn is one case of some calls. Every case is come back to in every round, so that whatever the machine does in the meantime
befalls all contenders alike. The first round checks results and finds out how long calls take (``Pace``); it counts for nothing else.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from shim.bench.cases import MEMORY_BYTES, Case, size_text
from shim.bench.plan import FLOORS, OVERLAP_SAMPLES, Contender, Plan, deadline_of, overlap_weight, start_weight
from shim.bench.ranks.rank_set import RanksEndedError
from shim.bench.ranks.turn import Answer, OverlapTurn, Turn
from shim.bench.results.record import Overlap, Result, figures_of, slowest

_FIRST_SIDE, _LARGEST_SIDE = 512, 8192  # rows of the matrices
_STEP = 16  # rows
_WAYS = 3  # the all_reduce alone, the product alone, both


class OverlapMeasurement:
    """One contender's turns. The first one finds out how large the matrices have to be, and counts for nothing else.

    ``refused`` says why there is nothing to measure.
    """

    def __init__(self, case: Case, contender: str) -> None:
        self.case, self.contender = case, contender
        self.refused = ""
        self._side = 0
        self._samples: list[float] = []

    def turn(self) -> OverlapTurn:
        return OverlapTurn(self.case, self._side or _FIRST_SIDE, OVERLAP_SAMPLES)

    def take(self, answers: Sequence[Answer]) -> None:
        """Take in what the ranks answered to a turn."""
        refused = next((answer.cannot for answer in answers if answer.cannot), None)
        if refused:
            self.refused = refused
            return
        times = slowest([answer.seconds for answer in answers])
        if self._side:
            self._samples += times
        else:
            self._side = _side_for(*(statistics.median(times[way::_WAYS]) for way in range(2)))

    def overlap(self) -> Overlap:
        """Return what has been measured, or why nothing has."""
        if self.refused:
            return Overlap(self.case, self.contender, reason=self.refused)
        alone, product, both = (statistics.median(self._samples[way::_WAYS]) * 1e6 for way in range(_WAYS))
        return Overlap(self.case, self.contender, self._side, alone, product, both, len(self._samples) // _WAYS)


def _side_for(communication: float, product: float) -> int:
    """Return how many rows the matrices need for their product to take as long as the communication."""
    side: float = _FIRST_SIDE * (communication / product) ** (1 / 3)
    return max(_STEP, min(_LARGEST_SIDE, round(side / _STEP) * _STEP))


TOO_LONG = 2.0  # seconds of a call after which larger sizes are not measured, and one sample a turn has to do
# After which a turn ends, whatever was expected of it: three samples that are not too long fit.
_MOST_SECONDS = 2 * TOO_LONG
_BATCH_SECONDS = 0.001  # after which no more calls are timed together: these can be told from the clock
_FEWEST_SAMPLES, _MOST_SAMPLES = 3, 200  # in one turn
_FIRST_WARM_UP, _WARM_UP = 6, 2  # batches; MPICH has its fast collectives from the sixth call on


def first_turn(case: Case) -> Turn:
    """Return the turn that says how long a call takes: one call, checked, and then timed; more than once where that is soon done."""
    return Turn(case, _FEWEST_SAMPLES if case.batch > 1 else 1, warm_up=0, check=True, calls=1, seconds=_MOST_SECONDS)


class Pace:
    """The turns after the first one, in which a call took *seconds* on the slowest rank. *budget* are a turn's seconds of timed calls."""

    def __init__(self, case: Case, seconds: float, budget: float) -> None:
        self._case, self._budget = case, budget
        self.call = self.spent = seconds
        self.calls = max(1, min(case.batch, int(_BATCH_SECONDS / max(seconds, 1e-9))))

    @property
    def sample(self) -> float:
        """Seconds of a sample with all that belongs to it, as far as they are known."""
        return max(self.spent, self.call * self.calls, 1e-9)

    def second_turn(self) -> Turn | None:
        """Return the turn that warms up, and checks the whole batch; None where a single call fills a turn."""
        if self.sample > self._budget and self.calls == 1:
            return None
        warm_up = max(1, min(_FIRST_WARM_UP, int(self._budget / self.sample)))
        return self._turn(_FEWEST_SAMPLES, warm_up, check=self.calls > 1)

    def turn(self) -> Turn:
        """Return one of the turns that count."""
        if self.call > TOO_LONG:
            return self._turn(1, 1)
        samples = max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, int(self._budget / self.sample)))
        return self._turn(samples, _WARM_UP if self.sample * _WARM_UP < self._budget else 1)

    def _turn(self, samples: int, warm_up: int, *, check: bool = False) -> Turn:
        return Turn(self._case, samples, warm_up, check, self.calls, _MOST_SECONDS)


_T = TypeVar("_T")
_RESTARTS = 3  # of a contender whose ranks had to be ended


class Ranks(Protocol):
    """A contender's rank processes, or what a test has instead."""

    versions: dict[str, str]
    command: list[str]

    def ask(self, request: Turn | OverlapTurn, deadline: float) -> list[Answer]: ...

    def close(self) -> None: ...


class Progress(Protocol):
    """Who is told how the run gets on."""

    def begin(self, text: str) -> None: ...

    def advance(self, weight: float) -> None: ...


@dataclass
class Outcome:
    """All of a run's results, and what the contenders said of themselves: versions and command line."""

    results: list[Result] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    commands: dict[str, dict[int, list[str]]] = field(default_factory=lambda: defaultdict(dict))


def in_turn(items: Sequence[_T], round_number: int, place: int) -> list[_T]:
    """Return *items* in the order of a round, at a place in it: beginning with another one each time, and backwards in odd rounds.

    So nobody is always first, or always after the same one.
    """
    by = (round_number + place) % max(1, len(items))
    order = [*items[by:], *items[:by]]
    return order[::-1] if round_number % 2 else order


def run_session(
    plan: Plan,
    start: Callable[[Contender, int], Ranks],
    progress: Progress,
    keep: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Carry out *plan*, with rank processes from *start*, which raises RanksEndedError where a contender does not start.

    *keep* is told what there is after each number of ranks.
    """
    outcome = Outcome()
    for ranks in plan.ranks:
        _Session(plan, ranks, start, progress, outcome).run()
        keep(outcome)
    return outcome


def _fastest_way(answers: Sequence[Answer]) -> list[float]:
    """Return the slowest rank's seconds of a turn's samples, of the way that was the fastest where there were several."""
    times = slowest([answer.seconds for answer in answers])
    of_one = len(times) // answers[0].ways
    return min((times[at : at + of_one] for at in range(0, len(times), of_one)), key=statistics.median)


class _Session:
    """The part of a run with one number of ranks."""

    def __init__(
        self, plan: Plan, ranks: int, start: Callable[[Contender, int], Ranks], progress: Progress, outcome: Outcome
    ) -> None:
        self._plan, self._ranks, self._start, self._progress, self._outcome = plan, ranks, start, progress, outcome
        self._sets: dict[str, Ranks] = {}
        self._starts: dict[str, int] = defaultdict(int)
        self._gone: dict[str, str] = {}  # contenders that are not started again, and why
        self._over: dict[tuple[str, Case], Result] = {}
        self._samples: dict[tuple[str, Case], list[list[float]]] = defaultdict(list)
        self._paces: dict[tuple[str, Case], Pace] = {}
        self._too_long: dict[tuple[str, str, str], tuple[int, float]] = {}  # by collective and dtype: size and seconds

    def run(self) -> None:
        turns = list(self._plan.turns(self._ranks))
        try:
            for contender in self._plan.contenders:
                self._progress.begin(f"starting {self._ranks} ranks of {contender.name}")
                self._ready(contender)
                self._progress.advance(start_weight(self._ranks))
            memory = self._plan.memory(self._ranks)
            for round_number in range(self._plan.rounds + 1):
                for place, (case, contenders) in enumerate(turns):
                    for contender in in_turn(contenders, round_number, place):
                        self._take(case, contender, round_number, memory)
            self._overlap()
        finally:
            for ranks in self._sets.values():
                ranks.close()
        self._conclude(turns)

    def _ready(self, contender: Contender) -> Ranks | None:
        """Return the contender's ranks, started anew where they had to be ended, or None where they are not any more."""
        name = contender.name
        if name in self._sets or name in self._gone:
            return self._sets.get(name)
        if self._starts[name] > _RESTARTS:
            self._gone[name] = f"its ranks had to be ended {_RESTARTS + 1} times"
            return None
        self._starts[name] += 1
        try:
            ranks = self._sets[name] = self._start(contender, self._ranks)
        except RanksEndedError as error:
            self._gone[name] = str(error)
            return None
        self._outcome.versions[name] = ranks.versions
        self._outcome.commands[name][self._ranks] = ranks.command
        return ranks

    def _take(self, case: Case, contender: Contender, round_number: int, memory: int) -> None:
        key = (contender.name, case)
        if key not in self._over:
            self._progress.begin(f"{case}: {contender.name}")
            if round_number == 0 and (why := self._too_much(key, memory)):
                self._over[key] = Result(case, contender.name, "skipped", why)
            elif (ranks := self._ready(contender)) is None:
                self._over[key] = Result(case, contender.name, "failed", self._gone[contender.name])
            elif round_number == 0:
                self._find_pace(key, ranks)
            elif answers := self._ask(key, ranks, self._paces[key].turn()):
                self._paces[key].spent = max(answer.spent for answer in answers)
                self._samples[key].append(_fastest_way(answers))
        self._progress.advance(self._plan.turn_weight(case))

    def _too_much(self, key: tuple[str, Case], memory: int) -> str | None:
        name, case = key
        if case.memory > memory and case.collective not in MEMORY_BYTES:
            return f"needs {case.memory >> 20} MB of memory, {memory >> 20} MB may be taken"
        size, seconds = self._too_long.get((name, case.collective, case.dtype), (case.size, 0.0))
        return f"{size_text(size)} take {seconds:.1f} s, larger ones are not measured" if size < case.size else None

    def _find_pace(self, key: tuple[str, Case], ranks: Ranks) -> None:
        name, case = key
        answers = self._ask(key, ranks, first_turn(case))
        if answers is None:
            return
        pace = self._paces[key] = Pace(case, min(_fastest_way(answers)), self._plan.budget)
        pace.spent = max(answer.spent for answer in answers)
        if pace.call > TOO_LONG:
            self._too_long.setdefault((name, case.collective, case.dtype), (case.size, pace.call))
        second = pace.second_turn()
        if second and (answers := self._ask(key, ranks, second)):
            pace.spent = max(answer.spent for answer in answers)

    def _ask(self, key: tuple[str, Case], ranks: Ranks, turn: Turn) -> list[Answer] | None:
        """Return what the ranks answer to *turn*; or None, and have it on record, where they have no figures."""
        name, case = key
        try:
            answers = ranks.ask(turn, deadline_of(case) + 2 * self._plan.seconds)
        except RanksEndedError as error:
            del self._sets[name]
            self._over[key] = Result(case, name, "failed", str(error))
            return None
        if any(answer.cannot for answer in answers):
            reason = next(answer.cannot for answer in answers if answer.cannot)
            self._over[key] = Result(case, name, "cannot", reason or "")
            return None
        return answers

    def _overlap(self) -> None:
        asked = self._plan.overlap
        if asked is None or asked.ranks != self._ranks:
            return
        contenders = [contender for contender in self._plan.contenders if contender not in FLOORS]
        measured = {contender: OverlapMeasurement(asked, contender.name) for contender in contenders}
        for round_number in range(self._plan.rounds + 1):
            for contender in in_turn(contenders, round_number, 0):
                self._progress.begin(f"overlap of {asked}: {contender.name}")
                self._ask_overlap(contender, measured[contender])
                self._progress.advance(overlap_weight(asked))
        self._outcome.overlaps += [one.overlap() for one in measured.values()]

    def _ask_overlap(self, contender: Contender, measurement: OverlapMeasurement) -> None:
        if measurement.refused:
            return
        ranks = self._ready(contender)
        if ranks is None:
            measurement.refused = self._gone[contender.name]
            return
        try:
            measurement.take(ranks.ask(measurement.turn(), deadline_of(measurement.case)))
        except RanksEndedError as error:
            del self._sets[contender.name]
            measurement.refused = str(error)

    def _conclude(self, turns: Sequence[tuple[Case, Sequence[Contender]]]) -> None:
        for case, contenders in turns:
            for contender in contenders:
                key = (contender.name, case)
                result = self._over.get(key)
                if result is None:
                    result = Result(case, contender.name, "measured", figures=figures_of(self._samples[key]))
                self._outcome.results.append(result)
