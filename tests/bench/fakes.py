"""Contenders without processes, and records without measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shim.bench.cases import LINE, Case
from shim.bench.floors import TWO_COPIES
from shim.bench.plan import CONTENDERS, FLOORS, OURS, Contender, Plan
from shim.bench.ranks.rank_set import RanksEndedError
from shim.bench.ranks.turn import Answer, OverlapTurn, Turn
from shim.bench.results.record import ContenderRecord, Figures, Overlap, Record, Result

MACHINE = {
    "processor": "Made-up 9000",
    "processors": 2,
    "processors_usable": 2,
    "caches": {"L2": "1024K"},
    "memory_bytes": 1 << 34,
    "hypervisor": True,
    "kernel": "6.1",
    "transparent_huge_pages": "madvise",
    "python": "3.11",
    "load_before": [0.1, 0.1, 0.1],
    "load_after": [0.1, 0.1, 0.1],
}
Reply = Callable[[Turn | OverlapTurn], list[Answer]]


class FakeRanks:
    """Answers turns from a function, and notes whose turn it was."""

    def __init__(self, name: str, reply: Reply, log: list[tuple[str, Turn | OverlapTurn]]) -> None:
        self.name, self.reply, self.log, self.closed = name, reply, log, False
        self.versions, self.command = {"made-up": "1"}, ["launcher"]

    def ask(self, request: Turn | OverlapTurn, deadline: float) -> list[Answer]:
        assert deadline > 0
        self.log.append((self.name, request))
        return self.reply(request)

    def close(self) -> None:
        self.closed = True


class Told:
    """A progress that adds up."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.weight = 0.0

    def begin(self, text: str) -> None:
        self.texts.append(text)

    def advance(self, weight: float) -> None:
        self.weight += weight


def steady(seconds: float, ranks: int = 2) -> Reply:
    """Every call takes so long, on the last rank twice as long."""

    def reply(request: Turn | OverlapTurn) -> list[Answer]:
        parts = 3 if isinstance(request, OverlapTurn) else 1
        return [
            Answer([seconds * (1 + (rank == ranks - 1))] * request.samples * parts, seconds) for rank in range(ranks)
        ]

    return reply


def dying(request: Turn | OverlapTurn) -> list[Answer]:
    raise RanksEndedError("rank 1 has died")


def refusing(request: Turn | OverlapTurn) -> list[Answer]:
    return [Answer(cannot="has no such thing")] * 2


def plan(names: Sequence[str], **changes: object) -> Plan:
    settings: dict[str, object] = {
        "collectives": ("all_reduce",), "ranks": (2,), "dtypes": ("float32",), "sizes": (8, 4096),
        "contenders": [CONTENDERS[name] for name in names], "rounds": 4, "seconds": 0.04, "processors": 2, "memory": lambda ranks: 1 << 30,
    }  # fmt: skip
    return Plan(**(settings | changes))  # type: ignore[arg-type]  # as the test says


def role(contender: Contender) -> str:
    return "ours" if contender in OURS else "floor" if contender in FLOORS else "peer"


def measured(case: Case, name: str, median: float) -> Result:
    return Result(
        case,
        name,
        "measured",
        figures=Figures(median, *(round(median * share, 4) for share in (0.9, 1.1, 0.8)), 9, [median]),
    )


def record(
    times: Mapping[tuple[Case, str], float], others: Sequence[Result] = (), overlaps: Sequence[Overlap] = ()
) -> Record:
    """Return a record with these medians in microseconds, on a machine whose cache lines go there and back in 0.1 us."""
    names = dict.fromkeys(name for _, name in times) | dict.fromkeys(result.contender for result in others)
    contenders = [
        ContenderRecord(name, CONTENDERS[name].title, role(CONTENDERS[name]), {"x": "1"}, {"2": []}) for name in names
    ]
    results = [measured(case, name, median) for (case, name), median in times.items()]
    ranks = dict.fromkeys(case.ranks for case, _ in times)
    lines = [measured(Case(LINE, number, "int64", 8), TWO_COPIES, 0.1) for number in ranks]
    return Record(dict(MACHINE), {"rounds": 1}, contenders, [*lines, *results, *others], list(overlaps))
