"""The HTML page in a real browser: what it shows, how it is filtered, sorted and read, by mouse and by keyboard."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from chromium import Chromium
from made_up import NASTY, a_matrix, a_matrix_of_kinds

from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import REFERENCE
from shim.conformance.matrix.cells import Column
from shim.conformance.matrix.files import as_html

ALL = [
    "torch.distributed.all_gather",
    "torch.distributed.all_gather#2",
    "torch.distributed.broadcast",
    "torch.distributed.zeta",
    "paddle.distributed.alltoall",
    "paddle.distributed.alltoall: in parts",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("page") / "matrix.html"
    file.write_text(as_html(a_matrix()), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser():
    with Chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, file):
    browser.events.clear()
    browser.open(file)
    yield browser
    assert browser.complaints() == []
    assert browser.evaluate("document.title") == "Documented examples, executed"
    assert {address.partition(":")[0] for address in browser.requests()} <= {"file", "about"}


def names(page):
    return page.evaluate("[...document.querySelectorAll('#rows tr')].map((row) => row.dataset.name)")


def text_of(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


def is_open(page):
    return page.evaluate("document.getElementById('panel').open")


def choose(page, select, value):
    page.evaluate(
        f"(() => {{ const field = document.getElementById('{select}'); field.value = '{value}';"
        " field.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def cell(name, column="shim torch shared_memory"):
    return f"tr[data-name='{name}'] button[data-column='{column}']"


def test_all_examples_and_counts_are_there(page):
    assert names(page) == ALL
    counts = text_of(page, "#counts article").split()
    assert counts[:4] == ["torch", "1.2.3", "on", "shim"]
    assert (
        " ".join(counts[4:])
        == "examples 4 run 4 pass 1 document wrong 1 not runnable here 1 fail 1 on record, not run 1"
    )
    assert text_of(page, "#outcome").split() == ["✗", "not", "passed"]
    assert text_of(page, "#number") == "6 of 6 examples"


def test_text_filters_and_every_word_counts(page):
    page.click("#search")
    page.type("gather")
    assert names(page) == ALL[:2]
    page.type(" ever")  # is in the reason of the second, on the other side
    assert names(page) == ALL[1:2]
    assert text_of(page, "#number") == "1 of 6 examples"
    page.type("x")
    assert names(page) == []
    assert text_of(page, "#nothing") == "No example is like that."
    page.click("#reset")
    page.wait_for("document.querySelectorAll('#rows tr').length === 6")


def test_framework_and_kind_filter(page):
    choose(page, "framework", "paddle")
    assert names(page) == ALL[4:]
    choose(page, "kind", "case")
    assert names(page) == ALL[5:]


def test_verdicts_filter_together(page):
    page.click("#verdicts [data-verdict='hangs']")
    assert names(page) == [ALL[1]]
    page.click("#verdicts [data-verdict='document wrong']")
    assert names(page) == [ALL[1], ALL[2]]
    pressed = "[...document.querySelectorAll('#verdicts [aria-pressed=true]')].map((chip) => chip.dataset.verdict)"
    assert page.evaluate(pressed) == ["document wrong", "hangs"]
    page.click("#verdicts [data-verdict='hangs']")
    page.click("#verdicts [data-verdict='document wrong']")
    assert names(page) == ALL


def test_only_where_columns_differ(page):
    page.click("#apart")
    assert names(page) == [ALL[1], ALL[2], ALL[3], ALL[5]]


def test_heads_sort_down_and_up(page):
    page.click("th[data-key='name'] button")
    assert names(page) == [*ALL[4:], *ALL[:4]]
    assert page.evaluate("document.querySelector('th[data-key=name]').getAttribute('aria-sort')") == "ascending"
    page.click("th[data-key='name'] button")
    assert names(page) == [*ALL[3::-1], *ALL[:3:-1]]
    page.click("th[data-key='ranks'] button")
    ranks = [
        page.evaluate(f"document.querySelector(\"tr[data-name='{name}'] .ranks\").innerText") for name in names(page)
    ]
    assert ranks == ["2", "2", "2", "2", "3", "8"]
    page.click("th[data-key='shim torch shared_memory'] button")  # what fails comes first, what was not run there last
    assert names(page) == [ALL[1], ALL[2], ALL[3], ALL[0], *ALL[4:]]


def test_a_cell_opens_with_code_outputs_and_reason(page):
    page.click(cell(ALL[2]))
    assert is_open(page)
    body = text_of(page, "#panel-body")
    assert f"document wrong: it shows {NASTY}"[:60] in body
    assert "docstring of torch.distributed.broadcast · 2 ranks · engine shared_memory · 0.25 s" in body
    assert "rank 1, line 4: item 1: shown 1, seen 2" in body
    lines = page.evaluate("[...document.querySelectorAll('#panel .code div')].map((line) => line.textContent)")
    assert lines == ["3import something", "4broadcast(", "5    tensor)", "8tensor"]
    cells = page.evaluate(
        "[...document.querySelectorAll('.outputs tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    assert cells == [
        ["4", "rank 0", "[1, 2]", "[1, 2]"],
        ["4", "rank 1", "[1, 2]", "[1, 2]\n\nitem 1: shown 1, seen 2"],
        ["8", "rank 0", "[0]", "[0]"],
        ["8", "rank 1", "[1]", "[1]"],
    ]


def test_the_panel_goes_to_the_other_column_and_to_the_next_example(page):
    page.click(cell(ALL[0]))
    page.press("j")
    assert text_of(page, "#panel-title") == ALL[1]
    assert "Not as recorded: fails, and the record says: pass" in text_of(page, "#panel-body")
    page.click("#panel .tabs [data-column='reference']")
    assert "hangs: it waits for ever" in text_of(page, "#panel-body")
    page.press("k")
    assert text_of(page, "#panel-title") == ALL[0]
    assert page.evaluate("document.getElementById('before').disabled")
    page.press("Escape")
    page.wait_for("!document.getElementById('panel').open && document.activeElement.dataset.column === 'reference'")
    assert page.evaluate("document.activeElement.closest('tr').dataset.name") == ALL[0]


def test_differences_are_marked(page):
    page.click(cell(ALL[5], "shim paddle shared_memory"))
    marked = page.evaluate("[...document.querySelectorAll('.outputs .differs')].map((row) => row.innerText)")
    assert len(marked) == 1
    assert "tensor 1: 1 of 1 elements differ" in marked[0]
    assert "It says: a. True is: b." in text_of(page, "#panel-body")


def test_everything_can_be_done_with_the_keyboard(page):
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.type("gather")
    page.evaluate("document.querySelector('#rows button').focus()")
    page.press("ArrowDown")
    page.press("ArrowRight")
    page.press("Enter")
    page.wait_for("document.getElementById('panel').open")
    assert text_of(page, "#panel-title") == ALL[1]
    assert (
        page.evaluate("document.querySelector('.tabs [aria-pressed=true]').dataset.column")
        == "shim torch shared_memory"
    )


def test_arrows_go_over_empty_cells(page):
    page.evaluate(f"document.querySelector({json.dumps(cell(ALL[3]))}).focus()")
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('tr').dataset.name") == ALL[3]  # the column has no more
    page.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.column") == "reference"


def test_an_address_opens_its_cell(page, file):
    page.open(file, "#torch.distributed.zeta/reference")
    assert is_open(page)
    assert "unsupported on this backend: gloo has none" in text_of(page, "#panel-body")
    page.click("#close")
    page.wait_for("location.hash === ''")


def test_text_stays_text(page):
    page.click(cell(ALL[4], "shim paddle shared_memory"))
    shown = page.evaluate("document.querySelector('.outputs .output').textContent")
    assert shown == NASTY
    assert page.evaluate("document.querySelectorAll('#panel img, #panel script').length") == 0


def test_light_and_dark_differ_and_can_be_read(page):
    def contrast():
        return page.evaluate("""(() => {
          const light = (color) => {
            const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
              .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
          };
          return [...document.querySelectorAll('.verdict')].map((each) => {
            const style = getComputedStyle(each);
            const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05);
          });
        })()""")

    backgrounds = []
    for dark in (False, True):
        page.use_scheme(dark)
        backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert min(contrast()) > 4.5
    page.use_scheme(False)
    assert backgrounds[0] != backgrounds[1]


def test_kinds_of_tensor_have_columns_and_counts(page, tmp_path):
    (tmp_path / "kinds.html").write_text(as_html(a_matrix_of_kinds()), encoding="utf-8")
    page.open(tmp_path / "kinds.html")
    heads = page.evaluate("[...document.querySelectorAll('#heads button')].map((head) => head.innerText)")
    assert heads[3:] == ["shim, numpy, shared_memory", "shim, torch, shared_memory", "shim, paddle, shared_memory"]
    cards = page.evaluate("[...document.querySelectorAll('#counts h2 span')].map((card) => card.innerText)")
    assert cards == ["on shim", "on shim, numpy", "on shim, paddle"]
    page.click("th[data-key='shim numpy shared_memory'] button")  # what is not applicable comes last
    assert [name[-1] for name in names(page)] == ["c", "a", "b"]
    page.click(cell("torch.distributed.b", "shim numpy shared_memory"))
    assert "not applicable: numpy has no bfloat16" in text_of(page, "#panel-body")
    colors = "(verdict) => getComputedStyle(document.querySelector(`#rows [data-verdict='${verdict}']`)).color"
    assert page.evaluate(f"({colors})('not applicable')") != page.evaluate(f"({colors})('pass')")


def test_our_own_cases_are_counted_on_the_frontends_alone(page, tmp_path):
    matrix = a_matrix()
    case = matrix.rows[-1]
    itself = replace(next(iter(case.cells.values())), verdict=Verdict.CRASHES)
    row = replace(case, cells={**case.cells, Column(REFERENCE, "", ""): itself})
    (tmp_path / "cases.html").write_text(as_html(replace(matrix, rows=(*matrix.rows[:-1], row))), encoding="utf-8")
    page.open(tmp_path / "cases.html")
    card = text_of(page, "#counts article:last-child").split()
    assert " ".join(card) == "our own cases on shim, numpy, paddle cases 1 pass 1 fail 1"


def test_all_columns_fit_into_a_window(page, tmp_path):
    (tmp_path / "wide.html").write_text(as_html(a_matrix_of_kinds(every=True)), encoding="utf-8")
    page.send("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    page.open(tmp_path / "wide.html")
    assert page.evaluate("document.querySelectorAll('#heads th').length") == 3 + 5
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_narrow_window_does_not_cut_the_panel(page):
    page.send("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
    page.click(cell(ALL[0]))
    assert page.evaluate("document.getElementById('panel').getBoundingClientRect().width") <= 420
    assert page.evaluate("document.getElementById('close').getBoundingClientRect().right") <= 420
    page.send("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
