"""What is promised, held against records that keep it, break it or do not have the figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from fakes import record

from shim.bench.cases import COLLECTIVES, SIZES, Case
from shim.bench.floors import ONE_COPY, TWO_COPIES
from shim.bench.results.comparison import Comparison
from shim.bench.results.promises import EVERY, Finding, findings
from shim.bench.results.record import Overlap, Result

EIGHT, SIXTEEN_MB = (Case("all_reduce", 2, "float32", size) for size in (8, 16 << 20))
BARRIER = Case("barrier", 2, "float32", 0)


def kept() -> dict[tuple[Case, str], float]:
    times: dict[tuple[Case, str], float] = {}
    for ranks in (2, 4, 8):
        for collective in COLLECTIVES:
            for size in SIZES if collective in EVERY else (0,):
                case = Case(collective, ranks, "float32", size)
                times |= {
                    (case, "torch"): 1.0,
                    (case, "openmpi"): 2.5,
                    (case, "openmpi-tuned"): 3.0,
                    (case, "gloo"): 60.0,
                    (case, "gloo-tuned"): 55.0,
                }
                times |= {(case, TWO_COPIES): 0.95, (case, ONE_COPY): 0.9, (case, "torch-shared"): 0.95}
    times |= {(case, "engine"): 0.4 for case in (BARRIER, EIGHT)}
    times |= {(EIGHT, name): 1.1 for name in ("paddle_3", "torch-numpy")}
    times |= {(EIGHT, "mindspore"): 2.2, (Case("all_reduce", 2, "bfloat16", 8 << 20), "torch"): 0.5}
    return times


def held(
    times: dict[tuple[Case, str], float], ratio: float = 1.1, processors: int = 4, others: Sequence[Result] = ()
) -> dict[str, Finding]:
    overlap = Overlap(SIXTEEN_MB, "torch", 512, 100.0, 90.0, 100.0 * ratio, 9)
    made = record(times, others, overlaps=[overlap])
    made.machine["processors_usable"] = processors
    found = findings(Comparison(made))
    assert len({one.promise for one in found}) == len(found)
    return {
        one.promise.partition(".")[0] + (one.promise.split()[3].rstrip(":") if one.promise.startswith("5") else ""): one
        for one in found
    }


def test_what_keeps_every_promise_holds() -> None:
    assert {key for key, one in held(kept()).items() if one.verdict != "holds"} == set()


@pytest.mark.parametrize(
    ("key", "case", "name", "time"),
    [
        ("1a", Case("broadcast", 2, "float32", 4096), "openmpi", 1.9),
        ("1b", Case("all_gather", 2, "float32", 256 << 20), "openmpi", 0.99),
        ("1c", Case("broadcast", 2, "float32", 8), "torch", 3.1),
        ("1d", Case("broadcast", 2, "float32", 4096), "openmpi-tuned", 1.9),
        ("1e", Case("all_gather", 2, "float32", 256 << 20), "openmpi-tuned", 0.99),
        ("1f", Case("broadcast", 2, "float32", 8), "openmpi-tuned", 0.8),
        ("1a", Case("send_receive", 2, "float32", 64 << 10), "openmpi", 1.9),
        ("1b", Case("all_gather_unequal", 2, "float32", 16 << 20), "openmpi", 0.9),
        ("1c", BARRIER, "openmpi", 0.8),
        ("1f", BARRIER, "openmpi-tuned", 0.8),
        ("2a", BARRIER, "gloo-tuned", 49.0),
        ("2a", Case("send_receive", 2, "float32", 4096), "gloo-tuned", 49.0),
        ("4", Case("barrier", 4, "float32", 0), "openmpi-tuned", 0.9),
        ("2a", EIGHT, "gloo", 49.0),
        ("2b", Case("all_to_all", 2, "float32", 64 << 10), "gloo", 14.0),
        ("2c", SIXTEEN_MB, "gloo", 2.9),
        ("3a", SIXTEEN_MB, TWO_COPIES, 0.5),
        ("3b", SIXTEEN_MB, "torch-shared", 1.2),
        ("4", Case("all_gather", 8, "float32", 8), "openmpi", 0.9),
        ("5aengine", BARRIER, "engine", 0.6),
        ("5btorch", EIGHT, "torch", 1.3),
        ("5bpaddle_3", EIGHT, "paddle_3", 1.3),
        ("5btorch-numpy", EIGHT, "torch-numpy", 1.3),
        ("5cmindspore", EIGHT, "mindspore", 2.6),
        ("6", Case("all_reduce", 2, "bfloat16", 8 << 20), "torch", 0.7),
    ],
)
def test_one_figure_breaks_a_promise(key: str, case: Case, name: str, time: float) -> None:
    found = held(kept() | {(case, name): time})
    assert found[key].verdict == "does not hold"
    assert held(kept())[key].verdict == "holds"


def test_the_worst_figure_is_told_with_its_case() -> None:
    told = held(kept() | {(Case("broadcast", 2, "float32", 4096), "openmpi"): 1.5})["1a"].told
    assert "1.50 times as fast as openmpi, broadcast of 4 KB on 2 ranks" in told


def test_a_promise_of_less_than_the_copying_takes_is_told_as_such() -> None:
    cases = [Case("broadcast", 2, "float32", size) for size in (4 << 10, 16 << 10, 64 << 10)]
    times = kept() | {(case, "openmpi"): 1.0 for case in cases}
    times |= {(case, TWO_COPIES): floor for case, floor in zip(cases, (0.3, 0.7, 0.9), strict=True)}
    times |= {(case, ONE_COPY): floor for case, floor in zip(cases, (0.2, 0.3, 0.6), strict=True)}
    told = held(times)["1a"].told
    assert "3 of 35 break it, 2 of which ask for less than two copies take, 1 of which ask for less than one" in told


def test_a_single_case_is_told_without_numbers() -> None:
    case = Case("broadcast", 2, "float32", 4096)
    times = {(case, "torch"): 1.0, (case, "openmpi"): 1.5, (case, TWO_COPIES): 0.9, (case, ONE_COPY): 0.2}
    assert held(times)["1a"].told == (
        "1.50 times as fast as openmpi, broadcast of 4 KB on 2 ranks, which is to be in less than two copies take"
    )


def test_a_missing_figure_is_no_kept_promise() -> None:
    times = kept()
    del times[SIXTEEN_MB, "gloo"]
    found = held(times)["2c"]
    assert (found.verdict, found.missing) == ("not measured", 1)


@pytest.mark.parametrize(
    ("key", "name"), [("1d", "openmpi-tuned"), ("2a", "gloo-tuned"), ("2a", "gloo"), ("4", "openmpi-tuned")]
)
def test_the_best_setting_is_not_known_before_all_have_been_measured(key: str, name: str) -> None:
    times = {of: time for of, time in kept().items() if of[1] != name}
    found = held(times)[key]
    assert (found.verdict, found.told) == ("not measured", "no figure")
    assert found.missing > 0


def test_what_one_setting_breaks_is_broken_without_the_other() -> None:
    times = {of: time for of, time in kept().items() if of[1] != "gloo-tuned"}
    assert held(times | {(EIGHT, "gloo"): 49.0})["2a"].verdict == "does not hold"


def test_what_a_library_cannot_is_not_asked_of_it() -> None:
    case, times = Case("all_gather_unequal", 2, "float32", 16 << 20), kept()
    for name in ("gloo", "gloo-tuned"):
        del times[case, name]
    assert held(times)["2c"].verdict == "not measured"
    refused = [Result(case, name, "cannot", "has no such thing") for name in ("gloo", "gloo-tuned")]
    assert held(times, others=refused)["2c"].verdict == "holds"


@pytest.mark.parametrize(
    ("ratio", "processors", "verdict"),
    [(1.1, 4, "holds"), (1.2, 4, "does not hold"), (1.2, 2, "does not apply"), (1.1, 2, "does not apply")],
)
def test_an_overlap_is_promised_where_a_processor_is_free(ratio: float, processors: int, verdict: str) -> None:
    found = held(kept(), ratio, processors)["7"]
    assert found.verdict == verdict
    assert found.told.startswith(f"{ratio:.2f} times")
    assert ("none of them free" in found.told) == (processors == 2)
    assert found.is_kept == (verdict != "does not hold")


def test_the_page_lists_what_is_promised() -> None:
    page = (Path(__file__).parents[2] / "docs" / "performance_notebook.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- (\d[a-z]?\. .*(?:\n  .*)*)$", page.partition("## What is promised")[2], re.MULTILINE)
    assert [" ".join(promise.split()) for promise in listed] == [
        one.promise for one in findings(Comparison(record({})))
    ]
