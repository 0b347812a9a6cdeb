"""``shim run --as-installed``: scripts and modules that import the frameworks run on the frontends, with their own modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from preloaded_programs import run_python

TRAINING = Path(__file__).resolve().parents[2] / "examples" / "training"


def run(folder: Path, *arguments: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "shim", "run", "-n", str(ranks), "--as-installed", *arguments, cwd=folder)


def make(folder: Path, **modules: str) -> None:
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")


SCRIPT = """
import sys
import torch
import torch.distributed as dist
import part

if __name__ == "__main__":
    dist.init_process_group()
    total = part.total(torch.ones(2) * (dist.get_rank() + 1))
    print(total.tolist(), sys.argv[1:], __file__.endswith("script.py"), dist.all_reduce.__module__)
    dist.destroy_process_group()
"""
PART = """
from torch.distributed import all_reduce

def total(tensor):
    all_reduce(tensor)
    return tensor
"""


def test_a_script_and_its_own_modules(tmp_path: Path) -> None:
    make(tmp_path, script=SCRIPT, part=PART)
    ended = run(tmp_path, "script.py", "--lr", "1")
    assert ended.returncode == 0, ended.stderr
    line = "[3.0, 3.0] ['--lr', '1'] True shim.frontends.torch.distributed._reductions"
    assert sorted(ended.stdout.splitlines()) == [f"[0] {line}", f"[1] {line}"]


def test_a_module_and_its_package(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    make(tmp_path / "package", __init__="", part=PART, script=SCRIPT.replace("import part", "from . import part"))
    ended = run(tmp_path, "-m", "package.script", "x", ranks=1)
    assert ended.returncode == 0, ended.stderr
    assert "[1.0, 1.0] ['x'] True shim" in ended.stdout


def test_a_traceback_shows_the_scripts_line(tmp_path: Path) -> None:
    make(tmp_path, script="import torch.distributed as dist\n\ndist.all_reduce(1)  # here\n")
    ended = run(tmp_path, "script.py", ranks=1)
    assert ended.returncode == 1
    assert 'script.py", line 3' in ended.stderr
    assert "# here" in ended.stderr


def losses(text: str) -> list[str]:
    return re.findall(r"step \d+: loss \d+\.\d+", text)


def of_torch(script: str) -> str:
    command = [sys.executable, "-m", "shim", "run", "-n", "2", script]
    # Not its status: torch itself, which is all that is in these processes, at times ends with "terminate called without an
    # active exception" after its group is destroyed, when all losses have been printed.
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout


def of_paddle(script: str) -> str:
    command = [sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", "logs", script]
    subprocess.run(command, capture_output=True, check=True, timeout=300)
    return Path("logs/workerlog.0").read_text(encoding="utf-8")


def of_mindspore(script: str) -> str:
    program = str(Path(sys.executable).parent / "msrun")
    command = [program, "--worker_num", "2", "--local_worker_num", "2", "--join", "True", "--log_dir", "logs", script]
    subprocess.run(command, capture_output=True, check=True, timeout=300)
    return "".join(log.read_text(encoding="utf-8", errors="replace") for log in Path("logs").glob("worker_*.log"))


REAL = {
    "torch_sgd": (of_torch, [0.87155, 0.39452, 0.35006, 0.31865]),
    "paddle_sgd": (of_paddle, [0.34285, 0.18155, 0.16143, 0.15262]),
    "paddle_data_parallel": (of_paddle, [0.73166, 0.50584, 0.42056, 0.37779]),
    "paddle_fleet": (of_paddle, [2.22867, 0.65173, 0.73553, 0.51544]),
    "paddle_model": (of_paddle, [0.47673, 0.33150, 0.29399, 0.26985]),
    "mindspore_sgd": (of_mindspore, [0.68861, 0.28235, 0.21558, 0.19746]),
    "mindspore_data_parallel": (of_mindspore, [0.76369, 0.36141, 0.28051, 0.24786]),
}

IN_GATE = ("torch_sgd", "paddle_data_parallel", "mindspore_data_parallel")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in IN_GATE else pytest.mark.nightly) for name in REAL]
)
def test_training_gives_the_losses_on_record_of_the_framework(name: str, tmp_path: Path) -> None:
    ended = run(tmp_path, str(TRAINING / f"{name}.py"))
    assert ended.returncode == 0, ended.stderr
    seen = [float(line.split()[-1]) for line in losses(ended.stdout)]
    assert seen == pytest.approx(REAL[name][1], rel=1e-3)  # other processors' matrix products may round otherwise


@pytest.mark.nightly
@pytest.mark.parametrize("name", REAL)
def test_training_gives_the_same_losses_as_with_the_framework(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(TRAINING / f"{name}.py")
    monkeypatch.chdir(tmp_path)
    ended = run(tmp_path, script)
    assert len(losses(ended.stdout)) == 4
    assert losses(ended.stdout) == losses(REAL[name][0](script))


LAZY = """
def all_reduce():
    from torch.distributed import all_reduce
    return all_reduce
"""
USER = """
import {0}.lazy
from {0} import first
print("{0}", {0}.lazy.all_reduce().__module__, first.find().all_reduce.__module__, {0}.again.__module__)
"""
FIRST = """
import importlib

def find():
    return importlib.import_module("torch.distributed")
"""


@pytest.mark.parametrize("module", [False, True])
def test_packages_beside_the_script_in_the_working_folder_and_on_the_search_path(
    module: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = tmp_path / "searched"
    for place, package in ((tmp_path / "work" / "scripts", "beside"), (tmp_path / "work", "around"), (searched, "far")):
        (place / package).mkdir(parents=True)
        make(place / package, __init__="from torch.distributed import all_gather as again", lazy=LAZY, first=FIRST)
    make(tmp_path / "work" / "scripts", script="".join(map(USER.format, ("beside", "around", "far"))))
    paths = [str(searched), str(tmp_path / "work"), str(tmp_path / "work" / "scripts"), *sys.path]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    program = ["-m", "scripts.script"] if module else ["scripts/script.py"]
    done = run_python("-m", "shim.substitution", *program, cwd=tmp_path / "work")
    assert done.returncode == 0, done.stderr
    seen = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in seen] == ["beside", "around", "far"]
    assert all(name.startswith("shim.frontends.torch") for line in seen for name in line[1:]), seen


def test_a_folder_of_installed_packages_on_the_search_path_is_not_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "installed"
    (installed / "package-1.0.dist-info").mkdir(parents=True)
    make(installed, package="from torch.distributed import all_reduce")
    (tmp_path / "work").mkdir()
    make(tmp_path / "work", script="import package\nprint(package.all_reduce.__module__)")
    monkeypatch.setenv("PYTHONPATH", ":".join([str(installed), *sys.path]))
    ended = run(tmp_path / "work", "script.py", ranks=1)
    assert ended.stdout == "[0] torch.distributed.distributed_c10d\n", ended.stderr


# What the program and each of its processes print is where their torch.distributed comes from.
STARTS_CHILDREN = """
import multiprocessing
import sys
import torch.distributed as dist
from beside import broadcast


def child(depth):
    print(depth, dist.all_reduce.__module__, broadcast.__module__, flush=True)
    if depth:
        run(depth - 1)


def run(depth):
    process = multiprocessing.get_context(sys.argv[1]).Process(target=child, args=(depth,))
    process.start()
    process.join()


if __name__ == "__main__":
    run(1)
"""


@pytest.mark.parametrize(
    ("program", "method"),
    [
        (["program.py"], "spawn"),
        (["program.py"], "fork"),
        (["program.py"], "forkserver"),
        pytest.param(["-m", "program"], "spawn", marks=pytest.mark.nightly),
    ],
)
def test_children_and_theirs_have_the_views_however_they_are_started(
    tmp_path: Path, program: list[str], method: str
) -> None:
    make(tmp_path, program=STARTS_CHILDREN, beside="from torch.distributed import broadcast")
    done = run_python("-m", "shim.substitution", *program, method, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["1", "0"], done.stderr
    assert all(name.startswith("shim.frontends.torch.distributed") for line in lines for name in line[1:]), lines


def test_without_substitution_nothing_is_replaced(tmp_path: Path) -> None:
    make(tmp_path, program=STARTS_CHILDREN, beside="from torch.distributed import broadcast")
    done = run_python("program.py", "fork", cwd=tmp_path)
    assert "shim" not in done.stdout
    assert done.stdout.startswith("1 torch.distributed")
