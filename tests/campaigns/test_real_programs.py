"""The table of real programs: what counts as gloo's results, and what the page says of what does not."""

from __future__ import annotations

from typing import Any

import pytest

from campaigns.real_programs import listed, page, record
from campaigns.real_programs.comparing import BITS, CLOSE, compare, is_on_engine
from campaigns.real_programs.program import Program
from campaigns.real_programs.running import ENGINE, GLOO, Run

OURS = "shim.frontends.torch._backend.group.EngineGroup"
FAKE = "torch._C._distributed_c10d.FakeProcessGroup"
PROGRAM = Program("torch_features/example", "an example")


def shown(value: Any, bits: int = 0, name: str = "loss") -> dict[str, Any]:
    return {"name": name, "value": value, "bits": bits}


def ran(*of_ranks: dict[str, Any], group: str = OURS, ending: str = "ok") -> Run:
    return Run(ending, 1.0, [[entry] for entry in of_ranks], [[group] for _ in of_ranks])


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (ran(shown(1.5, 7), shown(2.5, 8)), BITS),
        (ran(shown(1.5, 7), shown(2.5000001, 9)), CLOSE),
        (ran(shown(1.5, 7), shown(2.6, 9)), "rank 1, loss: 2.6, on gloo 2.5"),
        (ran(shown(1.5, 7), shown([2.5], 9)), "rank 1, loss: [2.5], on gloo 2.5"),
        (ran(shown(1.5, 7), shown(2.5, 8, "norm")), "rank 1 shows ['norm'], on gloo ['loss']"),
    ],
)
def test_results_are_compared_on_every_rank(ours: Run, expected: str) -> None:
    assert compare(ran(shown(1.5, 7), shown(2.5, 8)), ours) == expected


def test_every_group_of_every_rank_has_to_be_the_engines() -> None:
    assert is_on_engine(ran(shown(1), shown(1)))
    assert not is_on_engine(Run("ok", 1.0, [], [[OURS], [OURS, "torch.ProcessGroupGloo"]]))
    assert not is_on_engine(Run("ok", 1.0, [], [[OURS], []]))
    assert is_on_engine(Run("ok", 1.0, [], [[OURS], [OURS, FAKE]]))
    assert not is_on_engine(Run("ok", 1.0, [], [[OURS], [FAKE]]))


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        (ran(shown(1), shown(2)), ""),
        (ran(shown(1), shown(2), group="torch.ProcessGroupGloo"), "not on the engine"),
        (ran(shown(1), shown(2), ending="ValueError: no"), "ValueError: no"),
        (ran(shown(1), shown(3, 1)), "rank 1, loss: 3, on gloo 2"),
    ],
)
def test_what_ends_otherwise_is_told(ours: Run, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = record.entry_of(PROGRAM, "1.0", {GLOO: ran(shown(1), shown(2)), ENGINE: ours})
    assert record.is_wrong(entry) == bool(told)
    monkeypatch.setattr(page, "PROGRAMS", (PROGRAM,))
    text = page.text({"example": entry})
    assert told in text
    assert ("**differs**" in text) == bool(told)


def test_each_program_is_there_and_listed_once() -> None:
    names = [program.name for program in listed.PROGRAMS]
    assert len(set(names)) == len(names)
    assert [program.path for program in listed.PROGRAMS if not program.path.exists()] == []
