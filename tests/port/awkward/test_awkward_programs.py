"""Programs on which a port was silently wrong: each computes the same after the port, or has an entry on its awkward line."""

from __future__ import annotations

import importlib
import re
import sys
import types
from functools import cache
from typing import Any

import pytest
from awkward_programs import PROGRAMS as FIRST
from further_programs import PROGRAMS as FURTHER
from plain_values import is_same, plain

from shim.port import Plan, Ported, port_source
from shim.port.apis import APIS

PROGRAMS = {**FIRST, **FURTHER}
_FRAMEWORKS = {
    "torch": ("import torch\nimport torch.distributed as dist", "torch.ones(2)"),
    "mindspore": ("import mindspore\nimport mindspore.mint.distributed as dist", "mindspore.ops.ones((2,))"),
}
SAME = {"no-gradient"}  # rules of entries with which the port computes the same numbers
COMMENT = re.compile(r"  # ([\w ]+): ([\w -]+)$")


def written(program: str, api: str) -> str:
    _, text = PROGRAMS[program]
    alltoall = f"dist.alltoall({'ins, outs' if api == 'paddle_2' else 'outs, ins'})"
    imports, ones = _FRAMEWORKS.get(api, ("", ""))
    return text.replace("{alltoall}", alltoall).replace("{imports}", imports).replace("{ones}", ones)


CASES = [
    (program, source, target)
    for program, (sources, _) in PROGRAMS.items()
    for source in sources
    for target in APIS
    if target != source
]


def expected_entries(text: str, target: str) -> set[tuple[int, str]]:
    """The lines whose comments name the target, its framework, or all, with the rules."""
    found = [(number, COMMENT.search(line)) for number, line in enumerate(text.splitlines(), 1)]
    names = {target, APIS[target].framework, "all"}
    return {
        (line, rule)
        for line, comment in found
        if comment and names & {*comment[1].split()}
        for rule in comment[2].split()
    }


@pytest.mark.parametrize(("program", "source", "target"), CASES)
def test_entries_are_on_the_awkward_lines(program: str, source: str, target: str) -> None:
    text = written(program, source)
    entries = ported(program, source, target).entries
    assert {(entry.line, entry.rule) for entry in entries} == expected_entries(text, target)


@pytest.fixture
def texts(program: str, source: str, target: str) -> tuple[str, str]:
    """The program on the frontend of its own API, and its port."""
    return ported(program, source, source).text, ported(program, source, target).text


@cache
def ported(program: str, source: str, target: str) -> Ported:
    return port_source(written(program, source), Plan(source, target))


def may_differ(program: str, source: str, target: str) -> bool:
    return any(rule not in SAME for _, rule in expected_entries(written(program, source), target))


RUN = [case for case in CASES if not may_differ(*case)]


@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore")
@pytest.mark.ranks(2)
@pytest.mark.parametrize(("program", "source", "target"), RUN)
def test_the_port_computes_the_same(
    rank: int, world_size: int, texts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(rank, world_size, texts, monkeypatch)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore")
@pytest.mark.nightly
@pytest.mark.ranks(3)
@pytest.mark.parametrize(("program", "source", "target"), RUN)
def test_the_port_computes_the_same_on_three_ranks(
    rank: int, world_size: int, texts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(rank, world_size, texts, monkeypatch)


def compare(rank: int, world_size: int, texts: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    if "helper_names" in texts[0]:
        module = types.ModuleType("helper_names")
        vars(module)["torch"] = importlib.import_module("torch")
        monkeypatch.setitem(sys.modules, "helper_names", module)
    for name, value in {"RANK": rank, "WORLD_SIZE": world_size}.items():  # as launchers do
        monkeypatch.setenv(name, str(value))
        monkeypatch.setenv(name.replace("RANK", "RANK_ID").replace("WORLD", "RANK"), str(value))
    expected, found = (plain(run(text)) for text in texts)
    assert expected
    assert is_same(found, expected, 0.0), (found, expected)


def run(text: str) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)
    return names["run"]()
