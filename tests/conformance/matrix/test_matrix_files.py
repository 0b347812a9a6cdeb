"""The matrix as JSON, JUnit's XML, Markdown, and in the page's source."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from made_up import NASTY, a_judgement, a_matrix, a_matrix_of_kinds, a_source_run

from shim.conformance.matrix.as_json import as_json
from shim.conformance.matrix.cells import Matrix
from shim.conformance.matrix.files import as_html, as_junit, as_markdown
from shim.conformance.matrix.rows import rows_of_examples, subject_of


def test_json_has_every_row_column_and_cell():
    matrix = a_matrix(missing=["mindspore"])
    told = json.loads(json.dumps(as_json(matrix)))
    assert (told["schema"], told["passed"], told["absent"], told["missing"]) == (3, False, ["mindspore"], ["mindspore"])
    assert [example["name"] for example in told["examples"]] == [row.name for row in matrix.rows]
    keys = {column["key"] for column in told["columns"]}
    assert {key for example in told["examples"] for key in example["cells"]} == keys
    subject = told["subjects"][0]
    assert subject["verdicts"] == {"pass": 1, "fail": 1, "document wrong": 1, "not runnable here": 1}
    assert (subject["found"], subject["run"], subject["unseen"]) == (4, 4, ["torch.distributed.gone"])
    assert [each["recorded"] for each in told["subjects"]] == [True, False, True]
    cell = told["examples"][1]["cells"]["shim torch shared_memory"]
    assert (cell["verdict"], cell["change"]) == ("fail", "fails, and the record says: pass")
    assert cell["failures"][0]["ranks"] == [0, 1]
    assert cell["failures"][0]["summary"].startswith("ranks 0, 1, line 3: ValueError: ")


def test_what_json_is_said_to_have_is_what_it_has():
    told = as_json(a_matrix())
    described = as_json.__doc__
    cell = next(iter(told["examples"][0]["cells"].values()))
    for name in (*told, *told["subjects"][0], *told["columns"][0], *told["examples"][0], *cell, *cell["seen"][0]):
        assert re.search(rf"\b{name}\b", described), name


def test_junit_counts_what_it_has():
    root = ElementTree.fromstring(as_junit(a_matrix()))
    suites = {suite.get("name"): suite for suite in root}
    counts = {
        name: [int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")]
        for name, suite in suites.items()
    }
    assert counts == {
        "torch, reference": [4, 0, 0, 1],
        "torch, shim torch shared_memory": [4, 1, 0, 1],
        "paddle, shim paddle shared_memory": [2, 1, 0, 0],
        "paddle, shim numpy shared_memory": [1, 0, 0, 0],
        "torch, not run": [1, 0, 1, 0],
    }
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
    failed = suites["torch, shim torch shared_memory"].find("testcase/failure")
    assert failed.get("message") == "fails, and the record says: pass"
    assert "raise ValueError" in failed.text
    reasons = {
        test.get("name"): test.find("properties/property[@name='reason']")
        for test in suites["torch, shim torch shared_memory"]
    }
    assert reasons["torch.distributed.broadcast"].get("value") == f"it shows {NASTY}".replace("\x1b", "\ufffd")
    assert suites["torch, not run"].find("testcase").get("name") == "torch.distributed.gone"


def test_junit_fails_what_passes_and_should_not():
    run = a_source_run([a_judgement("torch.distributed.x", change="the document has changed")])
    root = ElementTree.fromstring(as_junit(Matrix(tuple(rows_of_examples([run])), (subject_of(run),), False, 1.0)))
    assert [suite.get("failures") for suite in root] == ["1"]
    assert root.find("testsuite/testcase/failure").get("message") == "the document has changed"


def test_junit_has_one_suite_for_all_that_was_not_run():
    run = a_source_run([a_judgement("torch.distributed.x")], unseen=["gone", "lost"])
    root = ElementTree.fromstring(as_junit(Matrix(tuple(rows_of_examples([run])), (subject_of(run),), False, 1.0)))
    assert [(suite.get("tests"), suite.get("errors")) for suite in root] == [("1", "0"), ("2", "2")]


def test_kinds_of_tensor_are_in_every_file():
    matrix = a_matrix_of_kinds()
    told = json.loads(json.dumps(as_json(matrix)))
    assert [(each["tensors"], each["engine"], each["run"]) for each in told["subjects"]] == [
        ("torch", "shared_memory", 3), ("numpy", "shared_memory", 1), ("paddle", "shared_memory", 2),
    ]  # fmt: skip
    verdicts = {key: cell["verdict"] for key, cell in told["examples"][1]["cells"].items()}
    assert verdicts == {
        "shim torch shared_memory": "pass",
        "shim numpy shared_memory": "not applicable",
        "shim paddle shared_memory": "fail",
    }
    root = ElementTree.fromstring(as_junit(matrix))
    skipped = root.findall("testsuite[@name='torch, shim numpy shared_memory']/testcase/skipped")
    assert [each.get("message") for each in skipped] == ["not applicable: numpy has no bfloat16"] * 2
    text = as_markdown(matrix)
    assert "## Not applicable\n\n- 2 with numpy tensors: numpy has no bfloat16\n- 1 with paddle tensors" in text
    assert "| `torch.distributed.b` | 2 | not applicable | pass | fail |" in text


def test_markdown_s_tables_have_as_many_cells_in_every_row():
    text = as_markdown(a_matrix(missing=["mindspore"]))
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 2
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    assert len(tables[1]) == 2 + 6
    assert "| torch 1.2.3 | shim | 4 | 4 | 1 | 1 | 1 | 1 | 0 | 0 | 0 |" in text
    assert "- `torch.distributed.gone`: on record and not run" in text
    assert "- mindspore: not installed, and asked for" in text
    assert "## Not as recorded" in text
    assert "**Not passed.**" in text


def test_markdown_of_what_examples_say_is_text():
    text = as_markdown(a_matrix())
    assert "<script>" not in text
    assert not re.search(r"(?<!\\)<", text)
    assert "\\*b\\*" in text


def test_nothing_in_the_data_ends_the_page_s_script():
    page = as_html(a_matrix())
    assert page.count("</script>") == 2
    assert NASTY not in page
    data = re.search(r'<script type="application/json" id="data">(.*)</script>', page)
    assert not re.search("[<>&]", data[1])
    assert json.loads(data[1])["examples"][4]["cells"]["shim paddle shared_memory"]["seen"][0]["seen"] == NASTY


def test_the_page_asks_for_nothing():
    page = as_html(a_matrix())
    markup = re.sub(r'<script type="application/json".*</script>', "", page)
    assert not re.search(r"https?:|\bsrc=|<link|@import|url\(", markup)
