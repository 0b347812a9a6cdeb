"""What the pages name exists: files of this project, and things one imports from it.

A code span that starts like a path of ours (``native/group/group.hpp``) must be one, and a dotted name that starts with
``shim.`` must be a module or something at the top of one. A span with a placeholder (``<name>``, ``N``, ``*``) is left alone;
one that was to be filled in (``@@PROFILE@@``) is found anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from checks.exports import names_in
from checks.source import modules

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs")

_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"^(?:\.ci|benchmarks|campaigns|checks|docs|examples|native|shim|tests|website)/[\w./-]*$")
_NAME = re.compile(r"^shim(?:\.\w+)+$")
_TO_FILL_IN = re.compile(r"@@\w+@@")
_LINK = re.compile(r"\]\(([\w./-]+)\)")


def check(root: Path) -> list[str]:
    """Find paths and names in the pages that are not there."""
    known = set(_importable(root))
    findings = []
    for page in _pages(root):
        if not page.exists():
            findings.append(f"{page.relative_to(root)}:1: there is no such page")
            continue
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            place = f"{page.relative_to(root)}:{number}"
            for span in _SPAN.findall(line):
                if _PATH.match(span) and not (root / span).exists():
                    findings.append(f"{place}: there is no {span}")
                elif _NAME.match(span) and span not in known:
                    findings.append(f"{place}: nothing is called {span}")
            findings += [f"{place}: {text} was to be filled in" for text in _TO_FILL_IN.findall(line)]
            findings += [
                f"{place}: links to {target}, which is not there"
                for target in _LINK.findall(line)
                if not (page.parent / target).exists()
            ]
    return findings


def _pages(root: Path) -> Iterator[Path]:
    for name in PAGES:
        if name.endswith(".md"):
            yield root / name
        else:
            yield from sorted((root / name).rglob("*.md"))


def _importable(root: Path) -> Iterator[str]:
    for module in modules(root, "shim"):
        yield module.name
        yield from (f"{module.name}.{name}" for name in names_in(module.tree))
