"""Recordings of small programs, made once for all tests of a session."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from recorded_programs import SETTING


@cache
def _script(folder: Path, text: str) -> Path:
    file = folder / f"program{len(list(folder.glob('*.py')))}.py"
    file.write_text(SETTING + textwrap.dedent(text))
    return file


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that runs a program on so many ranks and returns the folder of its recording."""
    folder = tmp_path_factory.mktemp("programs")

    @cache
    def record(text: str, ranks: int = 2, digests: bool = False) -> Path:
        script = _script(folder, text)
        to = folder / f"{script.stem}-{ranks}-{digests}"
        environment = {**os.environ, "SHIM_TRACE": str(to), "SHIM_TRACE_DIGESTS": str(int(digests))}
        command = [sys.executable, "-m", "shim", "run", "-n", str(ranks), str(script)]
        subprocess.run(command, env=environment, capture_output=True, timeout=300, start_new_session=True)
        assert len(list(to.glob("rank*.shimtrace"))) == ranks
        return to

    return record
