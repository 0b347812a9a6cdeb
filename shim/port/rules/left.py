"""Why a place is left as it is."""

from __future__ import annotations


class Left(Exception):
    """A place that cannot be ported. ``rule``, ``why`` and ``advice`` are those of its entry."""

    def __init__(self, rule: str, why: str, advice: str) -> None:
        super().__init__(why)
        self.rule = rule
        self.why = why
        self.advice = advice
