"""How long the fuzzing goes on: a fixed number of calls, always the same ones, or with ``--fuzz-seconds`` others for that time."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of this folder's tests."""
    parser.addoption("--fuzz-seconds", type=float, default=0.0, help="draw calls of each module for so many seconds")
