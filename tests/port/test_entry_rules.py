"""The rules of entries: the table has those that the port names, and its examples get such entries, or none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from shim.port import Plan, Ported, port_source
from shim.port.entry_rules import RULES, EntryRule
from shim.port.launch_lines.texts import port_launch_lines

PORT = Path(__file__).parents[2] / "shim" / "port"
_RULE = re.compile(r"[a-z]+(?:-[a-z]+)+")
_MODULES = {"torch": "torch.distributed", "paddle": "paddle.distributed", "mindspore": "mindspore.mint.distributed"}
EXAMPLES = [name for name, rule in RULES.items() if rule.before]


def ported(rule: EntryRule, code: str) -> Ported:
    framework = rule.source.partition("_")[0]
    onto, scope = (
        "native" if rule.code == "native" else "shim",
        "statements" if rule.code == "tensors" else "collectives",
    )
    plan = Plan(rule.source, rule.target, onto=onto, scope=scope)
    if rule.code == "launch":
        return port_launch_lines(f"{code}\n", plan)
    head = f"import {_MODULES[framework]} as dist\n"
    if rule.code == "tensors":
        head = f"import {framework}\n{head}x = {framework}.ones([4])\ndist.all_reduce(x)\n"
    return port_source(f"{head}{code}\n", plan)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_code_before_gets_an_entry_and_that_after_none(name: str) -> None:
    rule = RULES[name]
    assert name in {entry.rule for entry in ported(rule, rule.before).entries}
    assert not ported(rule, rule.after).entries


def test_few_rules_have_no_example() -> None:
    assert sorted({*RULES} - {*EXAMPLES}) == ["cell-not-python", "no-import", "not-ported"]


def test_the_table_has_the_rules_of_the_code() -> None:
    rules = {"not-ported"}
    for part, pattern in (("rules", _RULE), ("tensors", _RULE), ("correspondences", _RULE), ("launch_lines", re.compile("launch-.+")), ("notebooks", re.compile("cell-.+"))):  # fmt: skip
        for file in (PORT / part).rglob("*.py"):
            nodes = (node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant))
            rules |= {each for each in nodes if isinstance(each, str) and pattern.fullmatch(each)}
    assert rules == {*RULES}
    assert list(RULES) == sorted(RULES)
