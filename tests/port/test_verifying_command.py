"""The command that a report proposes for ``--verify``."""

from __future__ import annotations

from pathlib import Path

import pytest

from shim.port import Plan
from shim.port.launch_lines.verifying import command_for
from shim.port.run import port_paths

PROGRAM = "import torch.distributed as dist\ndist.barrier()\n"


def command(folder: Path, **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return command_for(port_paths([folder], Plan("torch", "mindspore"), jobs=1))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torchrun --nproc_per_node 4 a.py --lr 0.1", "shim run -n 4 a.py --lr 0.1"),
        ("\texec torchrun --nproc-per-node=3 -m a x 2>&1 | tee log", "shim run -n 3 -m a x"),
        ("shim run -n 4 a.py  # again\ntorchrun --nproc_per_node 3 a.py", "shim run -n 4 a.py"),
        ("torchrun --nproc_per_node $N a.py\ntorchrun --nproc_per_node 3 b.py", "shim run -n 2 a.py"),
        ("echo torchrun --nproc_per_node 3 a.py", "shim run -n 2 a.py"),
    ],
)
def test_a_launch_line_that_starts_a_program_of_the_project(folder: Path, text: str, expected: str) -> None:
    assert command(folder, a_py=PROGRAM, run_sh=text + "\n") == expected


def test_scripts_come_before_pages(folder: Path) -> None:
    page = "Try `torchrun --nproc_per_node 3 a.py`:\n\n```\n$ torchrun --nproc_per_node 5 a.py\n```\n"
    assert command(folder, a_py=PROGRAM, README_md=page) == "shim run -n 5 a.py"
    assert command(folder, z_sh="torchrun --nproc_per_node 4 a.py\n") == "shim run -n 4 a.py"


def test_a_program_in_the_folder_of_the_script(folder: Path) -> None:
    assert command(folder, sub__a_py=PROGRAM, sub__run_sh="torchrun --nproc_per_node 3 a.py\n") == (
        "cd sub && shim run -n 3 a.py"
    )


def test_without_a_launch_line_a_program_is_chosen_if_there_is_one(folder: Path) -> None:
    assert command(folder, a_py=PROGRAM, b_py=PROGRAM) == "shim run -n 2 PROGRAM"
    assert command(folder, b_py=f"{PROGRAM}if __name__ == '__main__': main()\n") == "shim run -n 2 b.py"


def test_without_a_ported_program_there_is_nothing_to_run(folder: Path) -> None:
    assert command(folder, run_sh="torchrun --nproc_per_node 4 a.py\n", c_py="import os\n") == ""
