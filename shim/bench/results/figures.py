"""Statistics of samples, and the result of a case, as it stands in a table and in JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from shim.bench.planning.cases import Case


@dataclass(frozen=True)
class Figures:
    """Microseconds of a call on the slowest rank: median and quartiles over all samples of all rounds, and each round's median."""

    median: float
    lower_quartile: float
    upper_quartile: float
    minimum: float
    samples: int
    rounds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """What came of a case with one contender: figures, or the reason why there are none.

    ``status`` is "measured"; "cannot" where the library has no such thing or refuses it; "failed" where its result was wrong, or its ranks died or
    hung; or "skipped" where the machine has not the memory, or a smaller size took too long.
    """

    case: Case
    contender: str
    status: str
    reason: str = ""
    figures: Figures | None = None


@dataclass(frozen=True)
class Overlap:
    """An asynchronous all_reduce and a matrix product: microseconds of each alone and of both together, medians of the slowest rank.

    ``side`` is the matrices'. Where the contender cannot, ``reason`` says why and the rest is 0.
    """

    case: Case
    contender: str
    side: int = 0
    communication: float = 0.0
    product: float = 0.0
    together: float = 0.0
    samples: int = 0
    reason: str = ""

    @property
    def ratio(self) -> float:
        """Both together, against the longer one alone: 1 where the other one costs nothing, 2 where nothing overlaps."""
        return self.together / max(self.communication, self.product)


def slowest(by_rank: Sequence[Sequence[float]]) -> list[float]:
    """Return each sample's longest time over the ranks."""
    return [max(sample) for sample in zip(*by_rank, strict=True)]


def figures_of(rounds: Sequence[Sequence[float]]) -> Figures:
    """Return the figures of the slowest rank's seconds, given round by round."""
    samples = [seconds * 1e6 for one in rounds for seconds in one]
    if len(samples) == 1:
        lower = middle = upper = samples[0]
    else:
        lower, middle, upper = statistics.quantiles(samples, n=4, method="inclusive")
    medians = [statistics.median(one) * 1e6 for one in rounds if one]
    return Figures(middle, lower, upper, min(samples), len(samples), medians)
