"""Conformance in tests has its ranks copied from one process that has imported the frameworks, not from one for each run and framework."""

from __future__ import annotations

from functools import partial

import preloaded_programs
import pytest

from shim.launch.pool import RankPool


@pytest.fixture(autouse=True)
def one_original(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("shim.conformance.examples.running.runner", "shim.conformance.runner"):
        monkeypatch.setattr(f"{module}.Original", preloaded_programs.SharedOriginal)
    original = preloaded_programs.original()
    original.start()  # so that no test finds a process that it has not seen begin
    copies = partial(RankPool, original=original)
    monkeypatch.setattr("shim.conformance.soak.soak.RankPool", copies)
