"""What became of a replayed rank, compared with what was recorded of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from shim.errors import ShimError
from shim.trace.calls import Call


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
