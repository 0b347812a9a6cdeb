"""What a program sees of Python with ``--as-installed`` is what it sees without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys

def function(number: int) -> str: ...

print(function.__annotations__, __file__, sys.argv, sys.path)
"""
OF_A_LINK = "import sys, beside\nprint(beside.__file__, __file__, sys.argv, sys.path)\n"


def printed(folder: Path, *command: str, **variables: str) -> str:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout


@pytest.mark.parametrize("variables", [{}, {"PYTHONSAFEPATH": "1"}], ids=["", "safe path"])
@pytest.mark.parametrize("program", [["program.py", "x"], ["-m", "program", "x"]], ids=["script", "module"])
def test_annotations_and_search_path(program: list[str], variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    if variables:  # the module is to be found without the working folder
        variables = {**variables, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(tmp_path)]))}
    seen = printed(tmp_path, *program, **variables)
    assert "<class 'int'>" in seen
    assert printed(tmp_path, "-m", "shim.substitution", *program, **variables) == seen


def test_a_link_to_a_script_imports_what_lies_beside_the_script(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "program.py").write_text(OF_A_LINK)
    (real / "beside.py").write_text("")
    (tmp_path / "link.py").symlink_to(real / "program.py")
    assert printed(tmp_path, "-m", "shim.substitution", "link.py") == printed(tmp_path, "link.py")
