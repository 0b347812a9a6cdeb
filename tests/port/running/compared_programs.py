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

import numpy as np
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
            elif not _is_same(results, expected, within):
                found[name] = f"{results} and not {expected}"
    return found


def _run(text: str, name: str, rank: int, size: int, runs: Runs) -> tuple[Any, Any]:
    module = types.ModuleType("drawn_program")
    sys.modules[module.__name__] = module  # so that the classes of objects that it sends are found
    with runs.recording() as recorded:
        exec(compile(text, f"<{name}>", "exec"), vars(module))
        results = [_plain(each) for each in module.run(rank, size)]
    return results, recorded[0]


def _plain(value: Any) -> Any:
    if hasattr(value, "asnumpy"):
        return value.asnumpy().copy()
    return (
        np.array(value.numpy())
        if hasattr(value, "numpy")
        else np.array(value)
        if isinstance(value, np.ndarray)
        else value
    )


def _is_same(found: Any, expected: Any, within: float) -> bool:
    if len(found) != len(expected):
        return False
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, np.ndarray):
            if not isinstance(one, np.ndarray) or one.dtype != other.dtype or one.shape != other.shape:
                return False
            if not np.allclose(one, other, within, within, equal_nan=True):
                return False
        elif one != other:
            return False
    return True
