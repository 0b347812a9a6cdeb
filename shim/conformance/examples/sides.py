"""The two sides that examples are run on: the frontends, called ``shim``, and the framework itself, called ``reference``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from shim.conformance.examples.example import Example
from shim.conformance.examples.runner import Outcome, run_examples

__all__ = ["REFERENCE", "RUNNERS", "SHIM", "Runner"]

SHIM, REFERENCE = "shim", "reference"


class Runner(Protocol):
    """Runs examples on one side, and tells of each as it begins and as it ends."""

    def __call__(
        self,
        examples: Sequence[Example],
        on_begin: Callable[[Example], None],
        on_outcome: Callable[[Outcome], None],
    ) -> Sequence[Outcome]: ...


def _on_frontends(
    examples: Sequence[Example], on_begin: Callable[[Example], None], on_outcome: Callable[[Outcome], None]
) -> Sequence[Outcome]:
    return run_examples(examples, on_outcome, on_begin=on_begin)


def _on_the_framework(
    examples: Sequence[Example], on_begin: Callable[[Example], None], on_outcome: Callable[[Outcome], None]
) -> Sequence[Outcome]:
    return run_examples(examples, on_outcome, substituted=False, on_begin=on_begin)


RUNNERS: Mapping[str, Runner] = {SHIM: _on_frontends, REFERENCE: _on_the_framework}
