"""The parity record of the site: the histories of functions, and the verdicts beside them."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from shim.record import read, recorded_versions
from website import parity
from website.badges import badges
from website.reports import FOLDER, Report, read_reports


@pytest.fixture(scope="module")
def names() -> dict[tuple[str, str], dict[str, object]]:
    return {(entry["frontend"], entry["name"]): entry for entry in parity.data()["names"]}


def test_a_functions_history_says_when_its_signature_changed(names: dict[tuple[str, str], dict[str, object]]) -> None:
    barrier = names["shim.frontends.torch", "torch.distributed.barrier"]
    assert [at["release"] for at in barrier["history"]] == ["torch-2.9.1", "torch-2.12.1"]
    assert (
        barrier["history"][1]["signature"] == "(group=GroupMember.WORLD, async_op=False, device_ids=None, timeout=None)"
    )
    newer = names["shim.frontends.torch", "torch.distributed.gather_single"]
    assert [(at["release"], at["signature"] is None) for at in newer["history"]] == [
        ("torch-2.9.1", True),
        ("torch-2.14.1", False),
    ]
    assert newer["shim"]["state"] == "communicates"


def test_an_examples_verdict_is_told_of_the_framework_and_of_ours(
    names: dict[tuple[str, str], dict[str, object]],
) -> None:
    [example] = names["shim.frontends.paddle_3", "paddle.distributed.alltoall"]["examples"]
    assert (example["framework"]["verdict"], example["shim"]["verdict"]) == ("unsupported on this backend", "pass")


def test_the_data_is_json_with_all_releases() -> None:
    found = json.loads(json.dumps(parity.data()))
    assert found["schema"] == 1
    assert [release for releases in found["releases"].values() for release in releases] == recorded_versions()


def test_the_pages_say_what_changed_and_whom_it_breaks() -> None:
    pages = parity.pages()
    assert (
        "torch 2.12.1: timeout is new (compatible); `(group=GroupMember.WORLD" in pages["parity/torch.distributed.md"]
    )
    assert "values given by position land elsewhere" in pages["parity/mindspore.mint.distributed.md"]
    assert "| mindspore&nbsp;2.9.0 | 154 | 2 | 0 | 6 |" in pages["parity/index.md"]


REPORTS = read_reports()


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_report_is_about_functions_of_a_recorded_release(report: Report) -> None:
    modules = read(report.release).modules
    known = {f"{module}.{name}" for module, records in modules.items() for name in records}
    assert report.functions
    assert [function for function in report.functions if function not in known] == []


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_report_says_where_it_is_known_and_what_the_page_is(report: Report) -> None:
    text = (FOLDER / f"{report.name}.md").read_text(encoding="utf-8")
    assert re.search(
        r"^- Page: <https://(docs\.pytorch\.org|www\.paddlepaddle\.org\.cn|www\.mindspore\.cn)/\S+>$", text, re.M
    )
    known = r"https://github\.com/[\w-]+/[\w.-]+/(issues|pull)/\d+"
    assert re.fullmatch(known, report.upstream) or "- Upstream: none found on 20" in text
    assert re.search(r"^- Wrong: the (implementation|documentation)$", text, re.M)
    assert text.count("```python\n# ranks: ") == text.count("```text") == 1


def test_the_list_of_reports_has_them_all() -> None:
    listed = re.findall(r"\[([^\]]+)\]\((\w+)\.md\)", (FOLDER / "index.md").read_text(encoding="utf-8"))
    assert [(title, name) for title, name in listed] == [(report.title, report.name) for report in REPORTS]


def test_a_function_s_page_and_the_data_lead_to_its_reports(names: dict[tuple[str, str], dict[str, object]]) -> None:
    [report] = names["shim.frontends.torch", "torch.distributed.monitored_barrier"]["reports"]
    assert (report["name"], report["release"], report["upstream"]) == ("torch_monitored_barrier", "torch-2.13.0", "")
    pages = parity.pages()
    assert "](../upstream/torch_monitored_barrier.md)." in pages["parity/torch.distributed.md"]
    [row] = [line for line in pages["parity/examples.md"].splitlines() if "[`monitored_barrier`]" in line]
    assert "| **hangs** | pass |" in row
    assert row.endswith("[new](../upstream/torch_monitored_barrier.md) |")
    assert names["shim.frontends.paddle_2", "paddle.distributed.alltoall"]["reports"] == []  # of another release


def test_a_badge_counts_the_examples_that_are_right_and_can_run_here() -> None:
    rows = [{"shim": {"verdict": verdict}} for verdict in ("pass", "ran, nothing claimed", "document wrong", "fail")]
    files = badges({"shim.frontends.paddle_2": [], "shim.frontends.paddle_3": rows})
    assert list(files) == ["badges/paddle.json", "badges/paddle.svg"]
    told = {"schemaVersion": 1, "label": "paddle.distributed examples on shim", "message": "2 of 3", "color": "red"}
    assert json.loads(files["badges/paddle.json"]) == told
    picture = ElementTree.fromstring(files["badges/paddle.svg"])
    assert picture.get("aria-label") == "paddle.distributed examples on shim: 2 of 3"


def test_the_site_has_a_badge_of_each_frontend_with_examples() -> None:
    files = parity.files()
    assert {name for name in files if name.endswith(".svg")} == {
        f"badges/{framework}.svg" for framework in ("torch", "paddle", "mindspore")
    }
    assert json.loads(files["badges/torch.json"])["color"] == "brightgreen"


def test_another_library_is_a_column_of_its_release_s_examples() -> None:
    [column] = [json.loads(file.read_text(encoding="utf-8")) for file in parity._COLUMNS.glob("torch_backend.json")]
    page = parity.pages()["parity/examples.md"]
    assert f"| example | torch itself | here | {column['title']} | report |" in page
    assert column["verdicts"]["torch.distributed.all_gather_single"]["verdict"] == "pass"
