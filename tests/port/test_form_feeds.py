"""Form feeds stay where they are, and what is ported is what was to be."""

from __future__ import annotations

import pytest
from port_functions import IMPORT, port_imports

from shim.port import port_source
from shim.port.plan import Plan, Ported
from shim.port.porting import FormFeedLost, with_form_feeds

PLAN = Plan("torch", "paddle_3")
CALL = "dist.all_to_all_single(x, y, async_op=True)"

CODES = [
    "\f{call}\n",
    "\f\n{call}\n",
    "\f# a comment\n{call}\n",
    "\f\f{call}\n\f{call}",
    "def f():\n\f    {call}\n\f    {call}\n",
    "def f():\n    \f    {call}\n",
    "@f\n\fdef f():\n    {call}\n\fclass A: pass\n",
    "if x:\n    {call}\n\felse:\n    {call}\n",
    "s = '''\n\f{call}\n'''\n{call}\n",
    "f(\n\f{call},\n  \f1)\n",
    "x = 1\n\f",
]


@pytest.mark.parametrize("code", CODES)
def test_a_port_is_the_same_with_form_feeds_and_without(code: str) -> None:
    text = f"{IMPORT}\n{code.format(call=CALL)}"
    ported = with_form_feeds(text, PLAN, port_source).text
    assert ported.count("\f") == text.count("\f")
    expected = port_source(text.replace("\f", ""), PLAN).text.split("\n")
    assert [line.replace("\f", "") for line in ported.split("\n")] == expected
    assert columns_of_feeds(ported) == columns_of_feeds(text)


def columns_of_feeds(text: str) -> list[int]:
    return [line.find("\f") for line in text.split("\n") if "\f" in line]


def test_entries_keep_their_lines() -> None:
    text = f"\f{IMPORT}\ndist.monitored_barrier()\n\fdist.monitored_barrier()\n\n\fdist.monitored_barrier()\ndist.monitored_barrier()"
    ported = with_form_feeds(text, PLAN, port_imports)
    assert [entry.line for entry in ported.entries] == [2, 3, 5, 6]


def test_a_form_feed_that_got_lost_is_an_error() -> None:
    with pytest.raises(FormFeedLost):
        with_form_feeds("\fx = 1\n", PLAN, lambda source, plan: Ported("x = 1\n", 0, ()))
