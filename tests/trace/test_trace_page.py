"""The page of a recording in a real browser: what it shows, and how one moves in it by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium
from made_up_recordings import WORLD, all_reduce, call, failure, recording

from shim.trace.calls import Recording
from shim.trace.page import as_html, page_data

NASTY = "</script><!-- & \u2028 'é'"
MS = 1_000_000


def job() -> Recording:
    """Three calls of two ranks: rank 1 is late for the first, the second goes on in the background, the third fails."""
    shape = all_reduce(source=f"/a/{NASTY}.py:7 in step")
    later = all_reduce(op="MAX", is_async=True)
    hidden = all_reduce(is_internal=True, op="MIN")
    return recording(
        call(0, shape, 0, 60 * MS), call(1, shape, 50 * MS, 61 * MS),
        call(0, hidden, 62 * MS, 63 * MS), call(1, hidden, 62 * MS, 63 * MS),
        call(0, later, 70 * MS, 95 * MS, waited=90 * MS, in_background=True), call(1, later, 71 * MS, 90 * MS),
        call(0, shape, 96 * MS, 99 * MS, failure=failure()), call(1, shape, 97 * MS, None),
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium((1200, 800)) as browser:
        yield browser


@pytest.fixture
def page(browser: Chromium, tmp_path: Path) -> Iterator[Chromium]:
    file = tmp_path / "trace.html"
    file.write_text(as_html(job()), encoding="utf-8")
    browser.events.clear()
    browser.open(file)
    yield browser
    assert browser.complaints() == []
    assert {address.partition(":")[0] for address in browser.requests()} <= {"file", "about"}


def text_of(page: Chromium, selector: str) -> str:
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


def details(page: Chromium) -> dict[str, str]:
    lines = page.evaluate(
        "[...document.querySelectorAll('#details dt')].map((dt) => [dt.innerText, dt.nextSibling.innerText])"
    )
    return dict(lines)


def shown(page: Chromium) -> tuple[float, float]:
    return tuple(page.evaluate("[view.from, view.to]"))


def click_at(page: Chromium, lane: int, ms: float, below: bool = False) -> None:
    """Click on what rank *lane* did at a time."""
    x, y = page.evaluate(
        f"(() => {{ const box = canvas.getBoundingClientRect(); return [box.left + xOf({ms * 1000}),"
        f" box.top + TOP + {lane} * LANE + {'ROW + 4' if below else 'ROW / 2'}]; }})()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def color_at(page: Chromium, lane: int, ms: float, below: bool = False) -> Any:
    y = f"TOP + {lane} * LANE + " + ("ROW + 4" if below else "ROW - 4")
    return page.evaluate(f"[...canvas.getContext('2d').getImageData(xOf({ms * 1000}), {y}, 1, 1).data].slice(0, 3)")


def color(page: Chromium, name: str) -> Any:
    value = page.evaluate(f"color('{name}')").lstrip("#")
    return [int(value[k : k + 2], 16) for k in (0, 2, 4)]


def test_the_slow_rank_is_named(page: Chromium) -> None:
    assert text_of(page, "#slowest") == "The others waited for rank 1 most: 100% of all waiting."
    assert text_of(page, "#about") == "6 calls of 2 ranks in 0.099 s"
    assert page.evaluate("[...document.querySelectorAll('#ranks tr.slowest td')].map((td) => td.innerText)[0]") == "1"
    assert "all_reduce" in text_of(page, "#operations")


def test_each_rank_has_a_lane_whose_colors_tell_what_it_did(page: Chromium) -> None:
    assert color_at(page, 0, 20) == color(page, "waiting")
    assert color_at(page, 0, 55) == color(page, "moving")
    assert color_at(page, 1, 55) == color(page, "moving")
    assert color_at(page, 1, 27) == [0, 0, 0]  # nothing
    assert color_at(page, 0, 80, below=True) == color(page, "background")
    assert color_at(page, 0, 92) == color(page, "moving")
    assert color_at(page, 0, 98) == color(page, "bad")
    page.use_scheme(True)
    dark = color(page, "moving")
    assert dark != [0x2F, 0x6F, 0xD0]
    page.wait_for(f"canvas.getContext('2d').getImageData(xOf(55000), TOP + ROW - 4, 1, 1).data[0] === {dark[0]}")
    page.use_scheme(False)


def test_a_click_tells_of_a_call_and_of_who_came_last(page: Chromium) -> None:
    click_at(page, 0, 20)
    told = details(page)
    assert (told["rank"], told["call"]) == ("0", "all_reduce(float32 [2, 3], SUM)")
    assert told["line"] == f"/a/{NASTY}.py:7 in step"
    assert told["took"] == "60.00 ms, of which 50.00 ms waiting for others"
    assert told["last to come"] == "rank 1, 50.00 ms after the first"
    assert "outcome" not in told
    click_at(page, 0, 80, below=True)
    assert details(page)["in the background"] == "the program waits from 90.00 ms on"
    click_at(page, 1, 98)
    assert details(page)["outcome"] == "has not ended"
    click_at(page, 1, 20)
    assert details(page) == {}


def test_keys_go_from_call_to_call_and_from_rank_to_rank(page: Chromium) -> None:
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.press(key)
        seen.append((details(page)["rank"], details(page)["began"]))
    assert seen == [
        ("0", "0 µs"), ("0", "70.00 ms"), ("1", "71.00 ms"), ("1", "97.00 ms"), ("1", "97.00 ms"), ("0", "96.00 ms"), ("0", "70.00 ms"),
    ]  # fmt: skip
    page.press("Escape")
    assert details(page) == {}


def test_calls_of_shim_itself_are_shown_where_asked_for(page: Chromium) -> None:
    click_at(page, 0, 62.5)
    assert "MIN" not in details(page).get("call", "")
    page.click("#internal")
    click_at(page, 0, 62.5)
    assert details(page)["call"] == "all_reduce(float32 [2, 3], MIN)"


def test_one_zooms_and_moves_by_keys_wheel_and_mouse(page: Chromium) -> None:
    whole = shown(page)
    page.press("+")
    assert shown(page)[1] - shown(page)[0] == pytest.approx((whole[1] - whole[0]) / 2)
    page.press("-")
    assert shown(page) == pytest.approx(whole)
    box = page.evaluate("(({left, top}) => [left, top])(canvas.getBoundingClientRect())")
    at = {"x": box[0] + 600, "y": box[1] + 40}
    under = page.evaluate("timeAt(600)")
    page.send("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-400, **at)
    page.wait_for(f"view.to - view.from < {(whole[1] - whole[0]) / 2}")
    assert page.evaluate("timeAt(600)") == pytest.approx(under, rel=1e-3)  # what is under the pointer stays
    before = shown(page)
    page.send("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **at)
    page.send("Input.dispatchMouseEvent", type="mouseMoved", button="left", x=at["x"] - 200, y=at["y"])
    page.send("Input.dispatchMouseEvent", type="mouseReleased", button="left", x=at["x"] - 200, y=at["y"])
    assert shown(page)[0] > before[0]
    assert shown(page)[1] - shown(page)[0] == pytest.approx(before[1] - before[0])
    page.click("#all")
    assert shown(page) == pytest.approx(whole)


def test_only_so_many_calls_are_drawn() -> None:
    whole = page_data(job())
    assert [len(rank["calls"]) for rank in whole["ranks"]] == [4, 4]
    cut = page_data(job(), most=4)
    assert [len(rank["calls"]) for rank in cut["ranks"]] == [2, 2]
    assert cut["about"].endswith("; the first 4 are drawn")
    assert cut["operations"] == whole["operations"]


def test_a_recording_without_calls_has_a_page(browser: Chromium, tmp_path: Path) -> None:
    file = tmp_path / "empty.html"
    file.write_text(as_html(recording(size=1)), encoding="utf-8")
    browser.events.clear()
    browser.open(file)
    browser.press("ArrowRight")
    assert browser.complaints() == []
    assert replace(WORLD, name="x").ranks == (0, 1)
