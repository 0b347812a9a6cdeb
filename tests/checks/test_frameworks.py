from __future__ import annotations

import json

import pytest

from checks import frameworks

ROWS = {
    "torch.distributed.a": {"text": "0", "verdict": "pass", "reference": {"verdict": "pass"}},
    "torch.distributed.b": {
        "text": "0",
        "reference": {"verdict": "crashes", "reason": "it | does", "evidence": "x", "or": [{"verdict": "hangs"}]},
    },
    "torch.distributed.c": {"text": "0", "reference": {"verdict": "fail", "reason": "so", "evidence": "x"}},
    "torch.distributed.d": {"text": "0", "reference": {"verdict": "fail", "reason": "so", "evidence": "y"}},
    "torch.distributed.e": {"text": "0", "verdict": "pass"},
}
CASES = {"torch.distributed.a: one": {"text": "0", "reference": {"verdict": "pass"}}}
TREE = {
    str(frameworks.RECORDS / "torch-1.2.json"): json.dumps(ROWS),
    str(frameworks.RECORDS / "torch-cases-1.2.json"): json.dumps(CASES),
    str(frameworks.RECORDS / "paddle-2.0.json"): json.dumps({"paddle.x": {"text": "0", "verdict": "pass"}}),
}


def test_the_page_counts_verdicts_and_has_each_reason_once(write_tree) -> None:
    page = frameworks.render(write_tree(TREE))
    assert "| framework | examples | pass | fail | crashes |" in page
    assert "| torch 1.2 | 4 | 1 | 2 | 1 |" in page
    assert "| torch 1.2, cases | 1 | 1 | 0 | 0 |" in page
    assert "| crashes or hangs | it \\| does | `torch.distributed.b` |" in page
    assert "| fail | so | `torch.distributed.c`, `torch.distributed.d` |" in page
    assert "## torch 1.2, cases\n\nEvery example passes.\n" in page
    assert "paddle" not in page


def test_a_page_that_says_the_same_passes(write_tree) -> None:
    root = write_tree(TREE)
    write_tree({str(frameworks.PAGE): frameworks.render(root)})
    assert frameworks.check(root) == []


@pytest.mark.parametrize("page", [None, "", "# What the frameworks themselves do on a CPU\n"])
def test_a_page_that_says_something_else_is_found(write_tree, page: str | None) -> None:
    root = write_tree(TREE)
    if page is not None:
        write_tree({str(frameworks.PAGE): page})
    assert frameworks.check(root) == ["docs/frameworks.md:1: is not what is on record: run python -m checks.frameworks"]
