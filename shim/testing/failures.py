"""The failures of a test on several ranks as one failure, and where ranks stand that are late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shim.core.reports.inquiries import GroupFacts, ProcessFacts, ask_all
from shim.core.reports.waits import absent_ranks
from shim.launch.pool import Outcome
from shim.testing.report import Failure, ranks_in_words


class _FailedRank(NamedTuple):
    """How the test failed on a rank. What comes first is what the others follow from: a death, then the earliest error."""

    order: int
    when: float
    rank: int
    headline: str
    text: str
    raised: Failure | None = None


_DIED, _RAISED, _DIFFERS, _LATE = range(4)
_AT, _WAITS = "\nit is at ", ": has waited "  # in what is said of a late rank


def failed_ranks(outcomes: Iterable[Outcome]) -> Iterator[_FailedRank]:
    """Find the ranks that failed, and those that skipped, or failed as expected, while others did not."""
    all_outcomes = list(outcomes)
    ended = {outcome.value.ended for outcome in all_outcomes if outcome.value is not None}
    for outcome in all_outcomes:
        rank, report = outcome.rank, outcome.value
        if outcome.error is not None or report is None:
            text = outcome.error or "it gave no report"
            waits = _WAITS in text  # for a rank that does not, perhaps
            headline = ": ".join(text.split("\n")[: 2 if _AT in text else 1])
            yield _FailedRank(_LATE if outcome.is_late else _DIED, waits, rank, headline, text)
        elif report.failure is not None:
            printed = f"\nrank {rank} printed:\n{outcome.printed}" if outcome.printed else ""
            headline = f"rank {rank}: {report.failure.headline}"
            text = report.failure.traceback + printed
            yield _FailedRank(_RAISED, report.failure.when, rank, headline, text, report.failure)
        elif report.ended not in ("passed", "loaded") and len(ended) > 1:
            text = f"{report.ended}, while other ranks did not: {report.reason}"
            yield _FailedRank(_DIFFERS, 0, rank, f"rank {rank} {text}", text)


def headline_of(failures: Sequence[_FailedRank]) -> str:
    """Return the first failure in a line. Where other ranks had raised what that rank was to raise as well, it begins with these."""
    first = failures[0]
    others: dict[str, list[int]] = {}
    for failed in sorted(failures[1:], key=lambda failed: failed.rank):
        if failed.raised is not None and failed.raised.is_as_expected:
            others.setdefault(failed.raised.outcome, []).append(failed.rank)
    if first.raised is None or not others:
        return first.headline
    own = first.raised.outcome + first.raised.place if first.raised.outcome else f"raised {first.raised.headline}"
    return ", ".join(
        [*(f"{ranks_in_words(ranks)} {what}" for what, ranks in others.items()), f"rank {first.rank} {own}"]
    )


def stalls(pids: Mapping[int, int]) -> dict[int, str]:
    """Return of each late rank that is in a group where it is, and whom it waits for there."""
    answers = {each.pid: each for each in ask_all()}
    known = {rank: answers[pid] for rank, pid in pids.items() if pid in answers and answers[pid].groups}
    return {
        rank: "\n".join([f"it is at {process.place}"] + [_stall(group, known.values()) for group in process.groups])
        for rank, process in known.items()
        if process.place
    }


def _stall(group: GroupFacts, processes: Iterable[ProcessFacts]) -> str:
    absent = sorted(group.ranks[rank] for rank in absent_ranks(group, processes))
    missing = f"; not arrived: {ranks_in_words(absent)}" if absent else ""
    return f"group {group.name!r}: {group.waits or 'waits for nobody'}{missing}"
