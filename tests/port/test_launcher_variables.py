"""Variables of a launcher, which a port onto another framework itself does not find."""

from __future__ import annotations

import pytest

from shim.port import Plan, port_source

READS = """\
import os
from os import environ, getenv
import torch.distributed as dist
dist.init_process_group()
device = int(os.environ["LOCAL_RANK"])
size = environ.get("LOCAL_WORLD_SIZE", "1") + getenv("WORLD_SIZE")
os.environ.setdefault("MASTER_PORT", "29500")
started = "TORCHELASTIC_RUN_ID" in os.environ
"""


def _reported(source: str, plan: Plan) -> list[tuple[int, str, str]]:
    return [
        (entry.line, entry.why.partition(" ")[0], entry.advice)
        for entry in port_source(source, plan).entries
        if entry.rule == "launcher-variable"
    ]


def test_each_is_reported_with_what_the_target_calls_it() -> None:
    other = "Ask the API, such as get_rank, or set the variable where you start the program."
    assert _reported(READS, Plan("torch", "paddle_3", onto="native")) == [
        (5, "LOCAL_RANK", "Use PADDLE_LOCAL_RANK."),
        (6, "LOCAL_WORLD_SIZE", "Use PADDLE_LOCAL_SIZE."),
        (6, "WORLD_SIZE", "Use PADDLE_TRAINERS_NUM."),
        (7, "MASTER_PORT", other),
        (8, "TORCHELASTIC_RUN_ID", other),
    ]
    assert (6, "LOCAL_WORLD_SIZE", other) in _reported(READS, Plan("torch", "mindspore", onto="native"))


@pytest.mark.parametrize(
    "plan", [Plan("torch", "paddle_3"), Plan("torch", "mindspore"), Plan("paddle_2", "paddle_3", onto="native")]
)
def test_shim_run_sets_them_all(plan: Plan) -> None:
    assert _reported(READS.replace("torch.", "paddle.") if plan.source == "paddle_2" else READS, plan) == []


def test_other_variables_and_other_dictionaries_are_none() -> None:
    source = 'import os\nimport torch.distributed as dist\ndist.barrier()\nos.environ["HOME"], {}.get("RANK"), "RANK" in ()\n'
    assert _reported(source, Plan("torch", "paddle_3", onto="native")) == []
