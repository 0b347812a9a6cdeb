"""docs/porting.md names every rule by which a place is left or changed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_RULE = re.compile(
    r'(?:Left\(|"(?:left|changed)",|\.argument,|rewriting\.report\(\s*[\w.\[\]]+,|self\.report\(\s*argument,)\s*"([a-z-]+)"|^_?[A-Z_]+ = "([a-z]+(?:-[a-z]+)+)"',
    re.MULTILINE,
)


def test_the_page_names_each_rule() -> None:
    rules = set()
    for file in [*(ROOT / "shim/port/rules").rglob("*.py"), *(ROOT / "shim/port/tensors").rglob("*.py")]:
        rules |= {one or other for one, other in _RULE.findall(file.read_text())}
    page = (ROOT / "docs/porting.md").read_text()
    entries = page[page.index("### Entries") : page.index("### Not ported yet")]
    assert len(rules) > 15
    assert rules == set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", entries))
