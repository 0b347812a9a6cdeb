"""What a rank does with a program and its ports: it runs all of them, and says what differs."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Mapping
from typing import Any

from plain_values import is_same, plain
from recorded_runs import Runs

from shim.trace.differences import compare


def differing(source: str, ports: Mapping[str, str], within: float) -> dict[str, str]:
    """Run *source* and each of *ports* on this rank; return what is not the same, by the port's name.

    Results may differ by *within*; with 0 the calls and their values are compared, too.
    """
    warnings.simplefilter("ignore")
    rank, size = (int(os.environ[name]) for name in ("SHIM_RANK", "SHIM_WORLD_SIZE"))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(folder, rank)
        expected, calls = _run(source, "source", rank, size, runs)
        found = {}
        for name, text in ports.items():
            try:
                results, others = _run(text, name, rank, size, runs)
            except Exception:
                return {**found, name: traceback.format_exc()}  # the world may be in any state
            outcome = compare(calls, others)
            if outcome.differences and not within:
                found[name] = f"call {outcome.differences[0].number}: {outcome.differences[0].whats}"
            elif not is_same(results, expected, within):
                found[name] = f"{results} and not {expected}"
    return found


def _run(text: str, name: str, rank: int, size: int, runs: Runs) -> tuple[Any, Any]:
    module = types.ModuleType("drawn_program")
    sys.modules[module.__name__] = module  # so that the classes of objects that it sends are found
    with runs.recording() as recorded:
        exec(compile(text, f"<{name}>", "exec"), vars(module))
        results = plain(module.run(rank, size))
    return results, recorded[0]
