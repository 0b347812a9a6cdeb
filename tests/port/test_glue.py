"""The module of glue beside files that are ported onto a framework itself."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shim.conformance.examples.adapting import free_ports
from shim.port.glue import FUNCTIONS, module_text
from shim.port.plan import Plan, Result
from shim.port.run import port_paths, write_files

SOURCE = """\
import torch.distributed as dist
def tell(object, root):
    objects = [None] * dist.get_world_size()
    dist.gather_object(object, objects if dist.get_rank() == root else None, dst=root)
    return objects
"""
SENDS = "import torch.distributed as dist\ndef send(things):\n    dist.send_object_list(things, 1)\n"
NATIVE = Plan("torch", "paddle_3", onto="native")


def port(folder: Path, plan: Plan = NATIVE) -> Result:
    return port_paths([folder], plan, jobs=1)


def write(folder: Path, plan: Plan = NATIVE) -> list[str]:
    """Port and write the files of *folder*, and return why some of them are not."""
    return [file.problem.why for file in write_files(port(folder, plan)) if file.problem is not None]


def functions(folder: Path) -> list[str]:
    tree = ast.parse((folder / "shim_port_glue.py").read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_one_module_with_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(SOURCE)
    (tmp_path / "other.py").write_text(SENDS)
    result = port(tmp_path)
    assert [(file.path.name, file.is_new) for file in result.files] == [
        ("one.py", False),
        ("other.py", False),
        ("shim_port_glue.py", True),
    ]
    assert not (tmp_path / "shim_port_glue.py").exists()  # nothing is written by looking
    assert write(tmp_path) == []
    text = (tmp_path / "one.py").read_text()
    assert "\nfrom shim_port_glue import gather_object\n" in text
    assert "    gather_object(object, objects if" in text
    assert functions(tmp_path) == ["gather_object"]
    assert (tmp_path / "shim_port_glue.py").stat().st_mode == (tmp_path / "one.py").stat().st_mode


def test_it_grows_and_stays(tmp_path: Path) -> None:
    plan = Plan("torch", "paddle_2", onto="native")
    (tmp_path / "one.py").write_text(SOURCE)
    assert write(tmp_path, plan) == []
    (tmp_path / "two.py").write_text(SENDS)
    assert [file.is_new for file in port(tmp_path, plan).files] == [False, False]
    assert write(tmp_path, plan) == []
    assert functions(tmp_path) == ["gather_object", "send_object_list"]
    assert not port(tmp_path, plan).changed


@pytest.mark.parametrize("content", ["mine = 1\n", "", None])
def test_a_file_of_that_name_is_not_touched(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "one.py").write_text(SOURCE)
    (tmp_path / "plain.py").write_text("import torch.distributed as dist\n")
    taken = tmp_path / "shim_port_glue.py"
    taken.write_text(content) if content is not None else taken.mkdir()
    result = port(tmp_path)
    assert [file.path.name for file in result.unported] == ["one.py"]
    assert [file.path.name for file in result.changed] == ["plain.py"]
    write(tmp_path)
    assert (tmp_path / "one.py").read_text() == SOURCE
    assert content is None or taken.read_text() == content


def test_what_needs_it_is_not_written_without_it(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(SOURCE)
    result = port(tmp_path)
    (tmp_path / "shim_port_glue.py").write_text("written meanwhile\n")
    assert [file.problem is None for file in write_files(result)] == [False, False]
    assert (tmp_path / "one.py").read_text() == SOURCE
    assert sorted(os.listdir(tmp_path)) == ["one.py", "shim_port_glue.py"]


def test_packages_and_notebooks(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "one.py").write_text(SOURCE)
    (tmp_path / "package" / "main.py").write_text(f"{SOURCE}if __name__ == '__main__':\n    tell(1, 0)\n")
    (tmp_path / "two.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": [SOURCE]}]}))
    assert write(tmp_path) == []
    assert "from .shim_port_glue import gather_object" in (tmp_path / "package" / "one.py").read_text()
    assert "from shim_port_glue import gather_object" in (tmp_path / "package" / "main.py").read_text()
    assert "from shim_port_glue import gather_object" in (tmp_path / "two.ipynb").read_text()
    assert functions(tmp_path) == functions(tmp_path / "package") == ["gather_object"]


def test_frontends_need_none(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(SOURCE)
    for plan in (Plan("torch", "paddle_3"), Plan("torch", "mindspore", onto="native")):
        assert [file.path.name for file in port(tmp_path, plan).files] == ["one.py"]


@pytest.mark.frameworks
@pytest.mark.ranks(2)
def test_the_functions_of_glue(rank: int) -> None:
    """All of them, on Paddle's frontend, which takes the place of Paddle itself."""
    names: dict[str, Any] = {}
    every = [text.removeprefix("\ndef ").partition("(")[0] for _, _, text in FUNCTIONS.values()]
    text = module_text(every, "paddle_2").replace(
        "import paddle.distributed", "import shim.frontends.paddle_2.distributed"
    )
    exec(compile(text, "<glue>", "exec"), names)
    names["dist"].init_parallel_env()
    gathered: list[object] = ["old"]
    names["gather_object"]({"rank": rank}, gathered if rank == 1 else None, dst=1)
    assert gathered == ([{"rank": 0}, {"rank": 1}] if rank == 1 else ["old"])
    if rank == 0:
        names["send_object_list"]([{"a": 1}, "é" * 1000], dst=1)
    else:
        received = [None, None]
        names["recv_object_list"](received, src=0)
        assert received == [{"a": 1}, "é" * 1000]


PROGRAM = f"""{SOURCE}
dist.init_process_group()
print(dist.get_rank(), tell({{"from": dist.get_rank()}}, 1))
"""


@pytest.mark.nightly
@pytest.mark.frameworks
def test_on_paddle_itself(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    assert write(tmp_path) == []
    assert "shim.frontends" not in (tmp_path / "program.py").read_text()
    places = [f"127.0.0.1:{number}" for number in free_ports(2)]
    ranks = [
        subprocess.Popen(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PADDLE_DISTRI_BACKEND": "gloo",
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_TRAINERS_NUM": "2",
                "PADDLE_CURRENT_ENDPOINT": places[rank],
                "PADDLE_TRAINER_ENDPOINTS": ",".join(places),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    told = [process.communicate(timeout=300)[0].splitlines()[-1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0]
    assert told == ["0 [None, None]", "1 [{'from': 0}, {'from': 1}]"]
