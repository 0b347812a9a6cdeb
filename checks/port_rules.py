"""``docs/porting_rules.md`` is written from the table of the rules that entries of a port's report name.

``python -m checks.port_rules`` writes it; the check compares what stands there with what would be written.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from shim.port.entry_rules import RULES, page_of

PAGE = Path("docs/porting_rules.md")
_PREAMBLE = """\
# Rules of `shim port`

Every entry of a report names its rule. For each rule there is code that gets such an entry, and code to write in its
place. The examples have `dist` from `import torch.distributed as dist`, or from the other framework's module; with
`--scope statements`, `x` is a tensor. `shim port --explain RULE` prints a section of this page.

`python -m checks.port_rules` generates this page from `shim/port/entry_rules.py`. Edit them there.
"""


def check(root: Path) -> list[str]:
    """Find a page that is not what the table says."""
    page = root / PAGE
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    return [] if written == render() else [f"{PAGE}:1: is not what the rules say: run python -m checks.port_rules"]


def render() -> str:
    """Return the whole page."""
    return "\n".join([_PREAMBLE, *(_wrapped(page_of(name)) for name in RULES)])


def _wrapped(text: str) -> str:
    lines = [textwrap.fill(line, 120) if len(line) > 120 else line for line in text.splitlines()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    (Path(__file__).resolve().parent.parent / PAGE).write_text(render(), encoding="utf-8")
