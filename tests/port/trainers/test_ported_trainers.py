"""Small trainers, whole files, ported in three directions: they run on the target's tensors, and their losses agree."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shim.port import Plan, port_source

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))
REMARKS = {"cross-entropy", "index-dtype", "order-of-ties", "private-name", "one-hot-dtype", "shape-may-be-number"}
OTHER = {"paddle_3": "mindspore", "mindspore": "paddle_3"}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def ported(source: str, api: str, target: str) -> str:
    found = port_source(source, Plan(api, target, scope="files"))
    assert {entry.rule for entry in found.entries} <= REMARKS, found.entries
    return found.text


def printed(text: str, name: str) -> list[str]:
    """What the program prints whose source is *text*."""
    names: dict[str, Any] = {"__name__": name}
    output = io.StringIO()
    exec(compile(text, f"<{name}>", "exec"), names)
    with contextlib.redirect_stdout(output):
        names["train"]()
    return output.getvalue().splitlines()


def numbers(lines: list[str]) -> np.ndarray:
    return np.array([[float(each) for each in NUMBER.findall(line)] for line in lines])


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_losses_agree(program: Path) -> None:
    source = ported(program.read_text(), "torch", "torch")  # onto shim's frontend of torch
    expected = printed(source, "torch")
    assert len(expected) >= 3
    for target in OTHER:
        importlib.import_module("mindspore")  # before paddle
        text = ported(program.read_text(), "torch", target)
        assert "torch" not in text.replace("torch's", "")
        others = [(ported(text, target, each), f"{target} to {each}") for each in ("torch", OTHER[target])]
        for each, name in ((text, target), *others):
            found = printed(each, name)
            assert [NUMBER.sub("", line) for line in found] == [NUMBER.sub("", line) for line in expected], name
            np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-6, atol=1e-6, err_msg=name)
