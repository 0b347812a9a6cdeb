"""The traceback of a substituted program that fails is the one of plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])
PROGRAMS = {
    "a missing module": "import missing_module",
    "in its own module": "import beside",
    "no Python": "x = = 1",
    "no Python in its own module": "import broken",
    "the cause of another": "try:\n    import beside\nexcept ImportError as error:\n    raise ValueError('x') from error",
    "during another": "try:\n    import beside\nexcept ImportError:\n    1 / 0",
    "by a function of importlib": "import importlib\nimportlib.import_module('beside')",
    "its own hook": "import sys, traceback\nsys.excepthook = lambda *error: traceback.print_exception(*error)\nimport beside",
    "interrupted": "raise KeyboardInterrupt",
}
GROUP = "try:\n    import beside\nexcept ImportError as error:\n    raise ExceptionGroup('x', [error])"
if sys.version_info >= (3, 11):
    PROGRAMS["a group"] = GROUP


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("import missing_module\n")
    (tmp_path / "broken.py").write_text("x = = 1\n")
    return tmp_path


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_that_of_plain_python(program: str, folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAMS[program])
    plain = run(folder, "program.py")
    ours = run(folder, "-m", "shim.substitution", "program.py")
    assert plain.returncode == ours.returncode != 0
    assert ours.stderr.replace(f'{folder}/program.py"', 'program.py"') == plain.stderr.replace(
        f'{folder}/program.py"', 'program.py"'
    )


@pytest.mark.parametrize("program", ["import beside\n", "raise ValueError(1)\n", "x = = 1\n"])
def test_a_modules_begins_with_its_own_line(program: str, folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text(program)
    (folder / "package" / "__main__.py").write_text("")
    ended = run(folder, "-m", "shim.substitution", "-m", "package")
    assert ended.returncode == 1
    first = next(line for line in ended.stderr.splitlines() if line.startswith("  File"))
    assert first.startswith(f'  File "{folder}/package/__init__.py", line 1')


def test_a_refusal_ends_with_the_programs_line(folder: Path) -> None:
    (folder / "program.py").write_text("from torch.distributed import rpc\n\nrpc.init_rpc('a')\n")
    lines = run(folder, "-m", "shim.substitution", "program.py").stderr.splitlines()
    assert [line for line in lines if line.startswith("  File")] == [
        f'  File "{folder}/program.py", line 3, in <module>'
    ]
    assert any(line.startswith("shim.errors.UnsupportedError") for line in lines)
