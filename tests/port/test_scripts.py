"""Whole scripts, ported to each API and round the circle of all of them: they print what they printed on torch's frontend."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from shim.port import Plan, port_source

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.py"))
PATHS = [
    ("paddle_2",),
    ("paddle_3",),
    ("mindspore",),
    ("paddle_3", "mindspore", "torch"),
    ("mindspore", "paddle_2", "paddle_3", "torch"),
]


@pytest.fixture
def texts(script: Path) -> list[str]:
    """The script on torch's frontend, and its ports."""
    found = [port_source(script.read_text(), Plan("torch", "torch")).text]
    for path in PATHS:
        text, api = script.read_text(), "torch"
        for target in path:
            ported = port_source(text, Plan(api, target))
            assert {entry.rule for entry in ported.entries} <= {"argument-without-effect"}, path
            text, api = ported.text, target
        found.append(text)
    return found


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch 2.13 renamed:FutureWarning")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_port_prints_the_same(script: Path, texts: list[str]) -> None:
    expected, *found = [printed(text, script.name) for text in texts]
    for path, text in zip(PATHS, found, strict=True):
        assert text == expected, path


def printed(text: str, name: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, name, "exec"), {"__name__": "__main__"})
    return out.getvalue()
