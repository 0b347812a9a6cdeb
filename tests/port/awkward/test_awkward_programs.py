"""Programs on which a port was silently wrong: each computes the same after the port, or has an entry on its awkward line."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import numpy as np
import pytest
from awkward_programs import PROGRAMS

from shim.port import Plan, port_source
from shim.port.apis import APIS

_FRAMEWORKS = {
    "torch": ("import torch\nimport torch.distributed as dist", "torch.ones(2)"),
    "mindspore": ("import mindspore\nimport mindspore.mint.distributed as dist", "mindspore.ops.ones((2,))"),
}
# The ports that have an entry on each awkward line, and no other: by program, the targets (all where none stands there) and the rules.
REPORTED = {
    "a helper asks, whatever happened before": ("torch", ["before-init"]),
    "takes a failure for rank 0": ("", ["before-init"]),
    "a list may be empty": ("torch mindspore", ["list-may-be-empty"]),
    "asks a group of others for its size": ("torch mindspore", ["group-of-others"]),
    "asks for the size of a group of others by another function": ("torch paddle", ["group-of-others"]),
    "makes the same primitive often": ("", ["no-gradient"]),
    "looks at what a call returns": ("paddle", ["result-used"]),
    "waits for what a call returns": ("torch mindspore", ["result-used"]),
}


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


def is_reported(program: str, target: str) -> bool:
    targets, _ = REPORTED.get(program, ("nowhere", []))
    return not targets or APIS[target].framework in targets


@pytest.mark.parametrize(("program", "source", "target"), CASES)
def test_an_entry_is_on_the_awkward_line(program: str, source: str, target: str) -> None:
    text = written(program, source)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]
    entries = port_source(text, Plan(source, target)).entries
    wanted = [(line, rule) for line in lines for rule in REPORTED[program][1]] if is_reported(program, target) else []
    assert [(entry.line, entry.rule) for entry in entries] == wanted


RUN = [case for case in CASES if not is_reported(case[0], case[2])]


@pytest.fixture
def texts(program: str, source: str, target: str) -> tuple[str, str]:
    """The program on the frontend of its own API, and its port."""
    own, ported = (port_source(written(program, source), Plan(source, api)) for api in (source, target))
    return own.text, ported.text


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("program", "source", "target"), RUN)
def test_the_port_computes_the_same(
    rank: int, program: str, source: str, texts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "helper_names" in texts[0]:
        module = types.ModuleType("helper_names")
        vars(module)["torch"] = importlib.import_module("torch")
        monkeypatch.setitem(sys.modules, "helper_names", module)
    for name, value in {"RANK": rank, "WORLD_SIZE": 2, "RANK_ID": rank, "RANK_SIZE": 2}.items():  # as launchers do
        monkeypatch.setenv(name, str(value))
    expected, found = (run(text) for text in texts)
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array(one), array(other))


def run(text: str) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)
    return names["run"]()


def array(value: Any) -> Any:
    return value.asnumpy() if hasattr(value, "asnumpy") else value.numpy() if hasattr(value, "numpy") else value
