"""A folder or zip file with a ``__main__``, and a package, run with views as they run without."""

from __future__ import annotations

import re
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest
from preloaded_programs import run_python

# It says what it sees of Python, and where its torch.distributed comes from, and its module's.
MAIN = """
import sys
import torch.distributed as dist
{}

PLACES = dist.get_rank.__module__, helper.get_rank.__module__
print(__name__, __file__, __package__, __spec__.name, __spec__.origin, __cached__, sys.argv, sys.path, *PLACES)
print(__loader__.get_source(__spec__.name).count("PLACES"), helper.source())
"""
HELPER = """
import inspect
from torch.distributed import get_rank

def source():
    return inspect.getsource(source)
"""
# Its processes say it of themselves, and the program, which does not ask whether it is one, must not be run in them.
STARTS = """
import helper
import sys

helper.start(sys.argv[1])
"""
STARTED = """
import multiprocessing
from torch.distributed import get_rank

def say():
    print(get_rank.__module__)

def start(method):
    process = multiprocessing.get_context(method).Process(target=say)
    process.start()
    process.join()
"""


def make(folder: Path, main: str, helper: str) -> None:
    (folder / "app" / "package").mkdir(parents=True)
    (folder / "app" / "__main__.py").write_text(main.format("import helper"))
    (folder / "app" / "helper.py").write_text(helper)
    zipapp.create_archive(folder / "app", folder / "app.zip")
    for name, text in (("__init__", ""), ("__main__", main.format("from . import helper")), ("helper", helper)):
        (folder / "app" / "package" / f"{name}.py").write_text(text)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(("app", "safe"), [("app", []), ("app.zip", ["-P"])], ids=["folder", "zip file, safe path"])
def test_all_is_as_in_plain_python_but_the_frontend(
    app: str, safe: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    make(tmp_path, MAIN, HELPER)
    plain = run(tmp_path, *safe, app, "x")
    ours = run(tmp_path, *safe, "-m", "shim.substitution", app, "x")
    assert ours.returncode == 0, ours.stderr
    assert plain.stdout.count(" torch.distributed.") == 2, plain.stderr
    assert plain.stdout == re.sub(
        r" shim.frontends.torch.distributed\.\w+", " torch.distributed.distributed_c10d", ours.stdout
    )


@pytest.mark.parametrize(
    "app",
    [["app"], *(pytest.param(app, marks=pytest.mark.nightly) for app in (["app.zip"], ["-m", "package"]))],
    ids=" ".join,
)
def test_ranks_run_it(app: list[str], tmp_path: Path) -> None:
    make(tmp_path, MAIN, HELPER)
    folder = tmp_path / "app" if "-m" in app else tmp_path
    ended = run_python("-m", "shim", "run", "-n", "2", "--as-installed", *app, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert len(re.findall(r" shim.frontends.torch.distributed\.\w+", ended.stdout)) == 4, ended.stdout


@pytest.mark.parametrize(
    ("app", "method"),
    [("app", "fork"), ("app.zip", "spawn"), pytest.param("app", "forkserver", marks=pytest.mark.nightly)],
)
def test_processes_that_it_starts_have_the_views(app: str, method: str, tmp_path: Path) -> None:
    make(tmp_path, STARTS, STARTED)
    ended = run_python("-m", "shim.substitution", app, method, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(r"shim.frontends.torch.distributed\.\w+\n", ended.stdout), ended.stderr


@pytest.mark.parametrize("name", ["empty", "math", "missing", "missing.module"])
def test_what_cannot_be_run_by_its_name_ends_with_a_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = run(tmp_path, "-m", "shim.substitution", "-m", name)
    assert ended.returncode == 1
    assert re.fullmatch(rf"{sys.executable}: .*{name}.*\n", ended.stderr), ended.stderr


def test_a_folder_without_a_main_ends_with_a_line(tmp_path: Path) -> None:
    ended = run(tmp_path, "-m", "shim.substitution", ".")
    assert ended.returncode == 1
    assert ended.stderr == f"{sys.executable}: can't find '__main__' module in {str(tmp_path)!r}\n"
