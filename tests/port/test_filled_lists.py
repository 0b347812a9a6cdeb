"""Lists that Paddle appends to and others fill, wherever they are kept: a variable, an attribute, an element."""

from __future__ import annotations

import ast

import pytest

from shim.port import Plan, Ported, port_source


def port(body: str, one: str = "paddle_3", other: str = "torch") -> Ported:
    framework = "paddle" if one == "paddle_3" else "torch"
    head = f"import {framework}\nimport {framework}.distributed as dist\nclass A:\n    def f(self, out, x, d, k):\n        "
    ported = port_source(head + body.replace("\n", "\n        ") + "\n", Plan(one, other))
    ast.parse(ported.text)
    return ported


SIZE = "dist.get_world_size()"
EMPTY = [
    "{} = []\n",
    "{} = list()\n",
    "{}.clear()\n",
    "{} = []\nk.start()\nif k:\n    x.go()\n",
    "if k:\n    {} = []\n    ",
    "{} = []\nif k:\n    ",
    "{} = []\nif k:\n    {} = [x]\nelif x:\n    with k:\n        ",
    "{}, k = [], 1\n",
]


@pytest.mark.parametrize("place", ["y", "self.y", "d['y']", "d[k].y"])
@pytest.mark.parametrize("before", EMPTY)
def test_a_list_that_is_empty_before_the_call(before: str, place: str) -> None:
    start = before.replace("{}", place)
    ported = port(f"{start}dist.all_gather({place}, x)")
    assert f"{place}.extend(paddle.empty_like(x) for _ in range({SIZE}))\n" in ported.text
    assert not ported.entries
    ported = port(f"{start}dist.all_gather_object({place}, x)")
    assert f"{place}.extend([None] * {SIZE})\n" in ported.text
    assert not ported.entries


NOT_SHOWN = [
    "",
    "{} = d.start()\n",
    "{} = []\n{}.append(x)\n",
    "if k:\n    {} = []\n",
    "for x in d:\n    {} = []\n",
    "{} = []\nfor x in d:\n    ",
    "if k:\n    {} = []\nelse:\n    ",
    "{}, k = d.start()\n",
    "{} = []\ntry:\n    d.go({})\nfinally:\n    ",
]


@pytest.mark.parametrize("place", ["self.y", "d['y']", "d[k].y", "self.make()"])
@pytest.mark.parametrize("before", NOT_SHOWN)
def test_a_list_that_may_be_empty_is_reported(before: str, place: str) -> None:
    start = before.replace("{}", place) if "(" not in place else ""
    ported = port(f"{start}dist.all_gather({place}, x)")
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("changed", "list-may-be-empty")]
    ported = port(f"{start}dist.all_gather_object({place}, x)")
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "list-may-be-empty")]
    assert "extend" not in ported.text


@pytest.mark.parametrize("body", ["out = []\nfor x in d:\n    ", "out = list()\nwhile k:\n    "])
def test_a_list_that_is_empty_in_the_first_round_alone(body: str) -> None:
    ported = port(f"{body}dist.all_gather(out, x)")
    assert [entry.rule for entry in ported.entries] == ["list-may-be-empty"]
    assert "extend" not in ported.text


FILLED = [
    "self.y = [paddle.empty([2]) for _ in d]\n{}(self.y, x)",
    "d['y'] = [x, x]\n{}(d['y'], x)",
    "y = [x] * 2\nfor _ in d:\n    {}(y, x)",
    "{}(list(d.chunk(2)), x)",
    "{}([x, x], x)",
]


@pytest.mark.parametrize("body", FILLED)
def test_a_list_that_is_not_empty(body: str) -> None:
    ported = port(body.replace("{}", "dist.all_gather"))
    assert not ported.entries
    assert "extend" not in ported.text


def test_a_list_that_the_program_does_not_keep() -> None:
    for empty in ("[]", "list()"):
        ported = port(f"dist.all_gather({empty}, x)")
        assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "empty-list")]


@pytest.mark.parametrize("place", ["out", "self.y", "d['y']", "d[k].y"])
def test_a_list_of_objects_is_emptied_for_paddle(place: str) -> None:
    ported = port(f"dist.all_gather_object({place}, x)", "torch", "paddle_3")
    assert f"        {place}.clear()\n        dist.all_gather_object({place}, x)\n" in ported.text
    assert not ported.entries


def test_a_list_of_objects_that_a_call_returns_cannot_be_emptied() -> None:
    ported = port("dist.all_gather_object(self.make(), x)", "torch", "paddle_3")
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "list-may-be-empty")]
