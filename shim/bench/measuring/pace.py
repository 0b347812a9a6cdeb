"""How long a contender's turns of a case are: found out from what its first calls take, so that nobody's turns are without end."""

from __future__ import annotations

from shim.bench.planning.cases import Case
from shim.bench.ranks.turn import Turn

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
