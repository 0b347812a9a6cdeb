"""The parity record of the site: the histories of functions, and the verdicts beside them."""

from __future__ import annotations

import json

import pytest

from shim.record import recorded_versions
from website import parity


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
