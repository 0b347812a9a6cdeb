"""A rank's turn, without other processes: what is written, made and timed in which order."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shim.bench.cases import Case
from shim.bench.libraries.base import Batch, CannotError, Library, OverlapParts, Place
from shim.bench.ranks.turn import LINE_BYTES, OverlapTurn, StartingLine, Turn, take_overlap_turn, take_turn

SMALL = Case("all_reduce", 2, "float32", 8)


class Noted(Library, Batch):
    """Notes what is asked of it; its calls take as long as it says."""

    def __init__(self, wrong: str | None = None, error: Exception | None = None) -> None:
        super().__init__(Place(0, 1, "", 2, "", ()))
        self.noted: list[str] = []
        self.wrong, self.error = wrong, error

    def versions(self) -> dict[str, str]:
        return {}

    def batch(self, case: Case, calls: int) -> Batch:
        self.calls = calls
        return self

    def overlap(self, case: Case, side: int) -> OverlapParts:
        def start():
            until = time.perf_counter() + 0.02
            return lambda: time.sleep(max(0.0, until - time.perf_counter()))

        return OverlapParts(start, lambda: time.sleep(0.03))

    def rewrite(self) -> None:
        self.noted.append("rewrite")

    def run(self, way: int = 0) -> float:
        self.noted.append("run" if way == 0 else "run otherwise")
        if self.error is not None:
            raise self.error
        return float(len(self.noted))

    def mismatch(self) -> str | None:
        self.noted.append("check")
        return self.wrong

    def close(self) -> None:
        self.noted.append("close")


@contextmanager
def lines(tmp_path: Path, ranks: int) -> Iterator[list[StartingLine]]:
    file = tmp_path / "line"
    file.write_bytes(bytes(LINE_BYTES))
    yield [StartingLine(str(file), rank, ranks, os.cpu_count() or 1) for rank in range(ranks)]


def test_inputs_are_rewritten_before_each_batch_and_results_checked_before_the_first(tmp_path: Path) -> None:
    library = Noted()
    with lines(tmp_path, 1) as (line,):
        answer = take_turn(library, line, Turn(SMALL, samples=2, warm_up=1, check=True))
    assert library.noted == ["rewrite", "run", "check", *["rewrite", "run"] * 3, "close"]
    assert answer.seconds == [7.0, 9.0]  # what the batch itself said of its last two runs
    assert (answer.cannot, answer.error) == (None, None)


def test_a_batch_has_as_many_calls_as_asked_or_as_the_case_says(tmp_path: Path) -> None:
    library = Noted()
    with lines(tmp_path, 1) as (line,):
        take_turn(library, line, Turn(SMALL, 1, 0, check=False))
        assert library.calls == 32
        take_turn(library, line, Turn(SMALL, 1, 0, check=False, calls=3))
        assert library.calls == 3


def test_ways_are_warmed_up_and_timed_one_after_the_other(tmp_path: Path) -> None:
    library = Noted()
    library.ways = 2
    with lines(tmp_path, 1) as (line,):
        answer = take_turn(library, line, Turn(SMALL, samples=2, warm_up=1, check=False))
    assert library.noted == [*["rewrite", "run"] * 3, *["rewrite", "run otherwise"] * 3, "close"]
    assert (answer.ways, answer.seconds) == (2, [4.0, 6.0, 10.0, 12.0])


def test_all_ranks_end_a_turn_after_the_same_sample_where_it_takes_too_long(tmp_path: Path) -> None:
    answers: list[int] = []

    def take(line: StartingLine, seconds: float) -> None:
        answers.append(len(take_turn(Noted(), line, Turn(SMALL, 9, 0, check=False, seconds=seconds)).seconds))

    for first, samples in ((0.0, 1), (60.0, 9)):
        with lines(tmp_path, 2) as both:
            threads = [threading.Thread(target=take, args=(line, first + rank)) for rank, line in enumerate(both)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        assert answers == [samples] * 2
        answers.clear()


def test_a_wrong_result_is_never_timed(tmp_path: Path) -> None:
    library = Noted(wrong="element 3 is 4")
    with lines(tmp_path, 1) as (line,):
        answer = take_turn(library, line, Turn(SMALL, samples=2, warm_up=1, check=True))
    assert answer.error == "wrong result: element 3 is 4"
    assert library.noted == ["rewrite", "run", "check", "close"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CannotError("has no such thing"), "has no such thing"),
        (NotImplementedError("not here\nsecond line"), "NotImplementedError: not here"),
        (
            RuntimeError("\n\n---\nC++ stack\n---\n0 f\n1 g\nSomeError: not this size\n"),
            "RuntimeError: SomeError: not this size",
        ),
    ],
)
def test_what_the_first_call_refuses_is_something_it_cannot(tmp_path: Path, error: Exception, told: str) -> None:
    with lines(tmp_path, 1) as (line,):
        answer = take_turn(Noted(error=error), line, Turn(SMALL, samples=1, warm_up=1, check=True))
    assert (answer.cannot, answer.error) == (told, None)


def test_what_a_later_call_raises_is_an_error(tmp_path: Path) -> None:
    with lines(tmp_path, 1) as (line,):
        answer = take_turn(Noted(error=RuntimeError("lost")), line, Turn(SMALL, samples=1, warm_up=1, check=False))
    assert answer.error is not None
    assert answer.error.rstrip().endswith("RuntimeError: lost")


def test_an_overlap_has_each_part_alone_and_both_together(tmp_path: Path) -> None:
    with lines(tmp_path, 1) as (line,):
        answer = take_overlap_turn(Noted(), line, OverlapTurn(SMALL, 16, samples=2))
    assert len(answer.seconds) == 6
    for communication, product, together in (answer.seconds[:3], answer.seconds[3:]):
        assert communication >= 0.02
        assert product >= 0.03
        assert together >= 0.03


def test_nobody_leaves_the_starting_line_before_all_are_there(tmp_path: Path) -> None:
    arrived, left = [], []

    def go(line: StartingLine, late: float) -> None:
        for _ in range(3):
            time.sleep(late)
            arrived.append(time.monotonic())
            line.wait()
            left.append(time.monotonic())

    with lines(tmp_path, 2) as both:
        threads = [threading.Thread(target=go, args=(line, 0.05 * rank)) for rank, line in enumerate(both)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert len(left) == 6
    for at in (0, 2, 4):
        assert max(sorted(arrived)[at : at + 2]) <= min(sorted(left)[at : at + 2])


def test_a_line_has_room_for_so_many(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 256"):
        StartingLine(str(tmp_path / "line"), 0, 257, 2)
