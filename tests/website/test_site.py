"""The documentation site: built strictly, without broken links, served from this machine alone, and found by its words."""

from __future__ import annotations

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from chromium import Chromium
from markdown_it import MarkdownIt  # of rich

ROOT = Path(__file__).resolve().parents[2]
PHONE, DESK = (390, 844), (1280, 900)
FRAMEWORKS = {"docs.pytorch.org", "www.paddlepaddle.org.cn", "www.mindspore.cn"}
LONGEST = ("shim.errors", "shim.frontends.mindspore.ops", "shim.frontends.torch.distributed")  # for widths
PARTS = ("em>", "h2", "h3", "img", "li>", "ol>", "pre>", "strong>", "table>", "td", "ul>")  # whose numbers are compared
LOADED = {"img": "src", "link": "href", "script": "src", "source": "src"}  # what a browser asks for by itself


class Page(HTMLParser):
    """The anchors of a page, the addresses of its links, and of what it loads."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if given.get(LOADED.get(tag, "")) and given.get("rel") not in ("next", "prev"):
            self.loaded.append(str(given[LOADED[tag]]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built strictly."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {file: Page(file) for file in sorted(site.rglob("*.html")) if file.name != "404.html"}


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site, and return where."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium(DESK) as started:
        yield started


def test_every_link_leads_to_something_in_the_site(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https"):
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            if (
                not target.is_relative_to(site)
                or not target.exists()
                or (fragment and target in pages and fragment not in pages[target].ids)
            ):
                broken.append((str(file.relative_to(site)), link))
    assert broken == []


def test_nothing_of_the_markdown_is_lost(site: Path) -> None:
    commonmark = MarkdownIt("commonmark").enable("table")
    differing = []
    for source in sorted((ROOT / "docs").rglob("*.md")):
        place = source.relative_to(ROOT / "docs").with_suffix("")
        page = (site / (place.parent if place.name == "index" else place) / "index.html").read_text(encoding="utf-8")
        article = page.partition("<article")[2].partition("</article>")[0]
        rendered = commonmark.render(source.read_text(encoding="utf-8"))
        differing += [(str(place), tag) for tag in PARTS if article.count(f"<{tag}") != rendered.count(f"<{tag}")]
    assert differing == []


def test_nothing_is_loaded_from_another_site(pages: dict[Path, Page]) -> None:
    assert {address for page in pages.values() for address in page.loaded if urlsplit(address).netloc} == set()


def test_docstrings_link_to_the_frameworks_and_to_issues(site: Path, pages: dict[Path, Page]) -> None:
    reference = [page for file, page in pages.items() if file.is_relative_to(site / "reference")]
    hosts = {urlsplit(link).netloc for page in reference for link in page.links} - {""}
    assert hosts - {"squidfunk.github.io"} == FRAMEWORKS | {"github.com"}  # the theme's own, in the footer


def test_every_name_that_is_there_has_its_place_in_the_reference(site: Path, pages: dict[Path, Page]) -> None:
    rows = json.loads((site / "support.json").read_text(encoding="utf-8"))["names"]
    missing = []
    for row in rows:
        path = f"{row['module']}.{row['name']}"
        if row["state"] in ("communicates", "there", "refused"):
            page = pages.get(site / "reference" / row["module"] / "index.html")
            is_module = (ROOT / Path(*path.split("."))).with_suffix(".py").exists() or (
                ROOT / Path(*path.split("."))
            ).is_dir()
            if page is None or (path not in page.ids and not is_module):
                missing.append(path)
    assert missing == []


@pytest.mark.programs("chromium")
@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        (
            "alltoall_single",
            ["reference/shim.frontends.paddle_2.distributed/", "reference/shim.frontends.paddle_3.distributed/"],
        ),
        ("hang", ["tasks/hanging_job/"]),
        ("timeout", ["reliability/"]),
        ("ascend", ["tasks/torch_to_ascend/"]),
        ("gpu", ["tasks/tests_without_gpus/"]),
        ("clusters", ["tasks/two_clusters/"]),
    ],
)
def test_a_search_finds_the_page_that_one_wants(browser: Chromium, address: str, word: str, wanted: list[str]) -> None:
    browser.visit(f"{address}?q={word}")
    browser.wait_for("document.querySelectorAll('.md-search-result__item').length > 0")
    links = "[...document.querySelectorAll('.md-search-result__item > a')].map((link) => link.pathname)"
    found = [path.lstrip("/") for path in browser.evaluate(links)]
    assert found[0] in wanted, found[:5]


@pytest.mark.programs("chromium")
def test_the_search_box_tells_what_is_there_and_why_not(browser: Chromium, address: str) -> None:
    def shown(name: str, frontend: str = "") -> list[str]:
        browser.visit(f"{address}support/?name={name}&frontend={frontend}")
        browser.wait_for("document.querySelector('#support-search [role=status]').textContent")
        return browser.evaluate("[...document.querySelectorAll('#support-search li')].map((row) => row.textContent)")

    assert "shim.frontends.paddle_3.distributed.alltoall_single" in str(shown("paddle.distributed.alltoall_single", ""))
    assert shown("dist.alltoall_single", "shim.frontends.paddle_3")[0].startswith(
        "shim.frontends.paddle_3.distributed.alltoall_single there uses all_to_all."
    )
    [split, *_] = shown("split", "shim.frontends.paddle_2")
    assert "refused raises UnsupportedError: it is a layer of paddle's networks" in split
    [mesh, *_] = shown("DeviceMesh")
    assert "not there because it is a part of torch's device meshes. Import shim.torch_backend" in mesh
    assert shown("no_such_name") == []
    browser.evaluate("document.querySelector('#support-search input').value = ''")
    browser.click("#support-search input")
    browser.type("barrier")
    browser.wait_for("document.querySelectorAll('#support-search li').length > 4")
    assert browser.complaints() == []


@pytest.mark.programs("chromium")
def test_the_parity_search_shows_functions_and_keeps_its_address(browser: Chromium, address: str) -> None:
    def shown() -> list[str]:
        browser.wait_for("document.querySelector('#parity-search [role=status]').textContent")
        return browser.evaluate(
            "[...document.querySelectorAll('#parity-search > ul > li')].map((row) => row.textContent)"
        )

    browser.visit(f"{address}parity/?filter=red&framework=torch&name=monitored")
    [barrier] = shown()
    assert barrier.startswith("torch.distributed.monitored_barrier in shim.frontends.torch.distributed")
    assert "Example: torch-2.13.0 itself: hangs; here: pass; torch on shim's backend: pass" in barrier
    browser.visit(f"{address}parity/?name=no_such_name")
    assert shown() == []
    browser.evaluate("document.querySelector('#parity-search input').value = ''")
    browser.click("#parity-search input")
    browser.type("alltoall")
    browser.wait_for("location.search === '?name=alltoall'")
    assert sum(text.startswith("paddle.distributed.alltoall in shim.frontends.paddle_") for text in shown()) == 2
    assert browser.complaints() == []


@pytest.mark.programs("chromium")
@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_no_page_is_wider_than_a_phone_or_a_desk(
    site: Path, pages: dict[Path, Page], browser: Chromium, address: str, is_whole: bool
) -> None:
    few = [".", "support", "parity", "parity/examples", "upstream", *(f"reference/{module}" for module in LONGEST)]
    places = [str(file.parent.relative_to(site)) for file in pages] if is_whole else []
    wide = []
    for size, chosen in (
        (DESK, few),
        (PHONE, [*few, *(place for place in places if not place.startswith("reference/"))]),
    ):
        browser.resize(size)
        for place in chosen:
            browser.visit(f"{address}{place}/")
            if browser.evaluate("document.documentElement.scrollWidth") > size[0]:
                wide.append((place, size))
    assert wide == []
    assert browser.complaints() == []
    asked = {urlsplit(request).netloc for request in browser.requests() if request.startswith("http")}
    assert asked == {urlsplit(address).netloc}
