"""The page about a rule: what its entries mean, code that gets one, and code to write in its place."""

from __future__ import annotations

from shim.port.entry_rules import RULES
from shim.port.reports.wording import api_name

_OPTIONS = {"native": " --onto native", "tensors": " --scope statements"}


def page_of(name: str) -> str:
    """Return the page about the rule *name* as Markdown."""
    rule = RULES[name]
    text = f"## {name}\n\n{rule.meaning[0].upper()}{rule.meaning[1:]}.\n"
    if rule.before:
        command = f"`--from {api_name(rule.source)} --to {api_name(rule.target)}{_OPTIONS.get(rule.code, '')}`"
        text += f"\nWith {command}, this gets an entry:\n\n```\n{rule.before}\n```\n\nThis does not:\n\n```\n{rule.after}\n```\n"
    return text
