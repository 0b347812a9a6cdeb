"""``shim run --as-installed``: scripts and modules that import the frameworks run on the frontends, with their own modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = Path(__file__).resolve().parents[2] / "examples" / "training"


def run(folder: Path, *arguments: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shim", "run", "-n", str(ranks), "--as-installed", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=folder)


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
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def of_paddle(script: str) -> str:
    command = [sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", "logs", script]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    return Path("logs/workerlog.0").read_text(encoding="utf-8")


def of_mindspore(script: str) -> str:
    program = str(Path(sys.executable).parent / "msrun")
    command = [program, "--worker_num", "2", "--local_worker_num", "2", "--join", "True", "--log_dir", "logs", script]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    return "".join(log.read_text(encoding="utf-8", errors="replace") for log in Path("logs").glob("worker_*.log"))


@pytest.mark.parametrize("real", [of_torch, of_paddle, of_mindspore])
def test_training_gives_the_same_losses_as_with_the_framework(
    real: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework = real.__name__.removeprefix("of_")
    script = str(TRAINING / f"{framework}_sgd.py")
    monkeypatch.chdir(tmp_path)
    ended = run(tmp_path, script)
    assert ended.returncode == 0, ended.stderr
    assert len(losses(ended.stdout)) == 4
    assert losses(ended.stdout) == losses(real(script))
