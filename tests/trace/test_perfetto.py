"""The Trace Event file: what its viewers rely on."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from made_up_recordings import all_reduce, call, failure, recording
from recorded_programs import EVERYTHING

from shim.trace.perfetto import events_of, write_perfetto
from shim.trace.reading import read_recording


def test_a_call_is_a_slice_with_its_waiting_inside() -> None:
    job = recording(
        call(0, all_reduce(), 1000, 9000, input_digest=255), call(1, all_reduce(), 6000, 9500, failure=failure())
    )
    slices = [event for event in events_of(job) if event["ph"] == "X"]
    assert [(one["pid"], one["name"], one["ts"], one["dur"]) for one in slices] == [
        (0, "all_reduce", 0.0, 8.0), (0, "waiting for others", 0.0, 5.0), (1, "all_reduce", 5.0, 3.5),
    ]  # fmt: skip
    assert slices[0]["args"]["call"] == "all_reduce(float32 [2, 3], SUM)"
    assert slices[0]["args"]["source"] == "/a/train.py:7 in step"
    assert slices[0]["args"]["input digest"] == "00000000000000ff"
    assert slices[2]["args"]["error"] == "MismatchError: the ranks disagree"
    [begin, end] = [event for event in events_of(job) if event["ph"] in "sf"]
    assert (begin["pid"], begin["ts"], end["pid"], end["ts"]) == (1, 5.0, 0, 8.0)
    assert begin["id"] == end["id"]


def test_calls_in_the_background_have_lanes_of_their_own() -> None:
    job = recording(
        call(0, all_reduce(), 0, 9000, waited=7000, in_background=True), call(0, all_reduce(), 1000, 8000, in_background=True),
        call(1, all_reduce(), 0, 9000), call(1, all_reduce(), 7500, 9000),
    )  # fmt: skip
    mine = [event for event in events_of(job) if event["pid"] == 0 and event["ph"] in "beX"]
    assert Counter(event["ph"] for event in mine) == {"b": 2, "e": 2, "X": 1}
    assert len({event["id"] for event in mine if event["ph"] == "b"}) == 2
    assert [(one["name"], one["ts"], one["dur"]) for one in mine if one["ph"] == "X"] == [
        ("wait for all_reduce", 7.0, 2.0)
    ]


def test_the_file_of_a_program_is_whole(recorded: Callable[..., Path], tmp_path: Path) -> None:
    job = read_recording(recorded(EVERYTHING, 3))
    write_perfetto(job, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert [name.partition(" on ")[0] for name in names] == ["rank 0", "rank 1", "rank 2"]
    called = [event for event in events if event["ph"] in "Xb" and "args" in event]
    assert len(called) == len(job.calls)
    lanes: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in lanes.values():  # on one lane they follow each other, or lie in each other
        for (start, end), (after, until) in zip(sorted(slices), sorted(slices)[1:], strict=False):
            assert after >= end - 1e-3 or until <= end + 1e-3 or after == start
