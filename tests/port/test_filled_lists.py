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


FILLS = [
    ("dist.alltoall({}, ins)", "{}.extend(paddle.empty_like(each) for each in ins)\n"),
    ("dist.alltoall({}, [x, d[0]])", "{}.extend(paddle.empty_like(each) for each in [x, d[0]])\n"),
    ("dist.gather(x, {}, dst=1)", f"if dist.get_rank() == 1:\n            {{}}.extend(paddle.empty_like(x) for _ in range({SIZE}))\n"),
    ("dist.scatter_object_list({}, ins, 0)", "{}.append(None)\n"),
]  # fmt: skip


@pytest.mark.parametrize("place", ["y", "self.y", "d['y']"])
@pytest.mark.parametrize(("call", "statement"), FILLS)
def test_all_functions_that_append_to_an_empty_list(call: str, statement: str, place: str) -> None:
    ported = port(f"{place} = []\n{call.replace('{}', place)}")
    assert f"        {statement.replace('{}', place)}" in ported.text
    assert not ported.entries
    ported = port(f"{place} = d.start()\n{call.replace('{}', place)}")
    assert [entry.rule for entry in ported.entries] == ["list-may-be-empty"]


@pytest.mark.parametrize("made", ["[]", "[] if k else None", "list()"])
@pytest.mark.parametrize("given", ["y", "y if k else None"])
def test_the_roots_list_is_filled_on_the_root_alone(made: str, given: str) -> None:
    ported = port(f"y = {made}\ndist.gather(x, {given}, dst=0)")
    assert "if dist.get_rank() == 0:\n            y.extend(" in ported.text
    assert not ported.entries
    for made in ("[x] * 2 if k else None", "None", "[x, x]"):
        assert "extend" not in port(f"y = {made}\ndist.gather(x, {given}, dst=0)").text


def test_a_list_that_a_call_has_filled_already() -> None:
    ported = port("y = []\ndist.all_gather(y, x)\ndist.all_gather(y, k)\ndist.alltoall(y, d)")
    assert ported.text.count("extend") == 1
    assert not ported.entries
    ported = port("y = []\ndist.all_gather_object(y, x)\ndist.all_gather_object(y, k)")
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "list-may-be-empty")]
