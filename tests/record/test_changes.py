"""What changed between two records, and whom that breaks."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from shim.conformance.signatures.report import print_changes, record_named
from shim.record import Signatures, parameters_of, recorded_versions
from shim.record.changes import Change, changes_between, changes_of_function


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("(a, b)", "(a, b)", []),
        ("(a, b)", "(b, a)", [("silent", "what went to a, b goes to b, a")]),
        ("(a, b=1)", "(a, c, b=1)", [("silent", "what went to b goes to c"), ("loud", "c is new, and has no default")]),
        ("(a, b=1)", "(a, b=1, c=None)", [("compatible", "c is new")]),
        ("(a, b)", "(a)", [("loud", "b is gone")]),
        ("(a, b=1, c=2)", "(a, c=2)", [("silent", "what went to b goes to c"), ("loud", "b is gone")]),
        ("(a, b)", "(a, d)", [("loud", "b is now called d")]),
        ("(a, b=1)", "(a, b=2)", [("silent", "b has another default: 1, then 2")]),
        ("(a, b=1)", "(a, b)", [("loud", "b has no default any more")]),
        ("(a, b)", "(a, b=1)", [("compatible", "b has a default now, 1")]),
        ("(a, b)", "(a, *, b)", [("loud", "b is keyword-only now")]),
        ("(a, *, b)", "(a, b)", [("compatible", "b is positional or keyword now")]),
        ("(a, *args)", "(a, args)", [("silent", "args is positional or keyword now, and was variadic positional")]),
        ("(a, args=1)", "(a, *args)", [("silent", "args is variadic positional now, and was positional or keyword")]),
        ("(*a)", "(**a)", [("loud", "a is variadic keyword now")]),
        ("(a, *args)", "(a, *args)", []),
        ("(*, a)", "(a, /)", [("loud", "a is positional-only now")]),
        ("(a, /)", "(a)", [("compatible", "a is positional or keyword now")]),
        (
            "(a, /, b=1)",
            "(a, *, b=1)",
            [("compatible", "a is positional or keyword"), ("loud", "b is keyword-only now")],
        ),
        (
            "(a, b=1, /)",
            "(a, *, b=1)",
            [("compatible", "a is positional or keyword"), ("loud", "b is keyword-only now")],
        ),
        (
            "(a, x=None)",
            "(a, **kwargs)",
            [("silent", "x is gone: what calls give it goes to kwargs"), ("compatible", "")],
        ),
        (
            "(a, x, /)",
            "(a, *args)",
            [("compatible", ""), ("silent", "x is gone: what calls give it goes to args"), ("compatible", "")],
        ),
        ("(a, x, /)", "(a, /, **kwargs)", [("loud", "x is gone"), ("compatible", "")]),
        (
            "(a, x=1)",
            "(a, y=1, **rest)",
            [("silent", "x is now called y: what calls give by keyword goes to rest"), ("compatible", "")],
        ),
        (
            "(a, x=1)",
            "(a, y, **rest)",
            [("loud", "x is now called y: calls"), ("loud", "y has no default"), ("compatible", "")],
        ),
        ("(a, b, /)", "(a, d, /)", [("compatible", "b is now called d")]),
        ("(a)", "(a, *args, **kwargs)", [("compatible", "args is new"), ("compatible", "kwargs is new")]),
    ],
)
def test_changes_of_a_function(old: str, new: str, found: list[tuple[str, str]]) -> None:
    seen = list(changes_of_function(parameters_of(old), parameters_of(new)))
    assert [breaks for breaks, _ in seen] == [breaks for breaks, _ in found]
    assert all(part in what for (_, what), (_, part) in zip(seen, found, strict=True))


def signatures(**names: object) -> Signatures:
    return Signatures("made", "1", {}, {"made.module": names})


def test_changes_of_names_classes_and_constants() -> None:
    old = signatures(gone="()", f="()", Class={"__kind__": "c++", "m": "(a)"}, SUM="= 0", other="()")
    new = signatures(new="()", f="(a=1)", Class={"m": "(b, a)"}, SUM="= 1", other={"__init__": "()"})
    assert changes_between(old, new) == [
        Change("made.module.Class.m", "silent", "values given by position land elsewhere: what went to a goes to b"),
        Change("made.module.SUM", "silent", "has another value: 0, then 1"),
        Change("made.module.Class.m", "loud", "b is new, and has no default"),
        Change("made.module.gone", "loud", "is gone"),
        Change("made.module.other", "loud", "is something else: a function, then a class"),
        Change("made.module.f", "compatible", "a is new"),
        Change("made.module.new", "compatible", "is new"),
    ]


def test_the_swap_of_paddle_3_is_told_as_silent() -> None:
    screen = io.StringIO()
    found = print_changes(Console(file=screen, width=250), record_named("paddle 2.6.2"), record_named("paddle-3.3"))
    silent = {change.name for change in found if change.breaks == "silent"}
    assert {"paddle.distributed.alltoall", "paddle.distributed.alltoall_single"} <= silent
    assert "in_tensor, out_tensor goes to out_tensor, in_tensor" in screen.getvalue()
    assert "loud: 1 changes" in screen.getvalue()


def test_a_record_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"no record 'paddle 1'; there are .*mindspore-2\.10\.0, paddle-2\.6\.2"):
        record_named("paddle 1")


def test_nothing_changes_between_a_record_and_itself() -> None:
    for name in recorded_versions():
        assert changes_between(record_named(name), record_named(name)) == []
