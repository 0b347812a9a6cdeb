"""What the README shows runs, and prints what it should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def first_example() -> str:
    found = re.search(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_example_has_ten_lines() -> None:
    assert len([line for line in first_example().splitlines() if line]) == 10


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_example_runs(tmp_path: Path, size: int) -> None:
    (tmp_path / "example.py").write_text(first_example(), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "shim", "run", "-n", str(size), "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    total, each = [size * (size + 1) / 2] * 3, [[rank + 1.0] * 3 for rank in range(size)]
    for rank in range(size):
        assert f"rank {rank} of {size}: sum {total}, all {each}" in ended.stdout
