"""A hook of mkdocs: the site's pages are those in ``docs/``, some from elsewhere in the repository, and the reference.

The pages are written to be read in the repository, too. There a link may lead to any file; on the site, one to a file that is no page becomes
the path of that file.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.append(str(Path(__file__).resolve().parents[1]))

from website import parity, reference

_ROOT = Path(__file__).resolve().parents[1]
# Pages that are not in docs/, and what the site calls them.
_ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "native/README.md": "native.md",
}
_ASSETS = ("website/style.css", "website/support.js", "website/parity.js")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
# The pages that a reader wants first for a word of theirs.
_BOOST = {
    "tasks/": 2.0,
    "reliability.md": 4.0,
    "parity/": 0.3,
    "performance_notebook.md": 0.3,
    "decisions.md": 0.3,
    "changelog.md": 0.3,
}
_SEARCH_BOX = '<div id="support-search" data-rows="../support.json" data-reference="../reference/"></div>\n\n'


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the reference into the navigation, and watch what pages are made of."""
    config.watch += [str(_ROOT / name) for name in ("shim", "website", *_ELSEWHERE)]
    for section in config.nav or []:
        if section.get("Reference"):
            section["Reference"] = reference.navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in ``docs/``."""
    for path, name in _ELSEWHERE.items():
        files.append(File.generated(config, name, abs_src_path=str(_ROOT / path)))
    for path in _ASSETS:
        files.append(File.generated(config, path, abs_src_path=str(_ROOT / path)))
    for name, text in (reference.pages() | parity.pages() | parity.files()).items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Point links at the site's own pages, and say how much a page counts in the search."""
    here = page.file.src_uri
    for start, boost in _BOOST.items():
        if here.startswith(start):
            page.meta.setdefault("search", {})["boost"] = boost
    if here.startswith(("parity/", "reference/")):
        return markdown
    if here == "index.md":
        page.meta["hide"] = ["navigation"]  # which is that page alone
    if here == "support.md":
        markdown = markdown.replace("\n\n", "\n\n" + _SEARCH_BOX, 1)
    return _LINK.sub(lambda link: _linked(link, here, files), markdown)


def _linked(link: re.Match[str], here: str, files: Files) -> str:
    """Return the *link* of the page *here* as it is on the site."""
    text, target, anchor = link[1], link[2], link[3] or ""
    source = next((path for path, name in _ELSEWHERE.items() if name == here), f"docs/{here}")
    path = os.path.normpath(PurePosixPath(source).parent / target)
    name = _ELSEWHERE.get(path, path.removeprefix("docs/"))
    if files.get_file_from_path(name) is not None and (path in _ELSEWHERE or path.startswith("docs/")):
        shown = _title(_ROOT / path) if text == PurePosixPath(path).name else text
        return f"[{shown}]({os.path.relpath(name, PurePosixPath(here).parent)}{anchor})"
    if not (_ROOT / path).exists():
        return link[0]  # which the strict build then finds
    return f"`{path}`" if text == path else f"{text} (`{path}`)"


@cache
def _title(page: Path) -> str:
    """Return what *page* is called; a file that is none, by its name."""
    first = page.read_text(encoding="utf-8").partition("\n")[0] if page.suffix == ".md" else ""
    return first.removeprefix("# ") if first.startswith("# ") else page.name
