"""Records as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import record

from shim.bench.cases import Case
from shim.bench.results.record import Overlap, Result, figures_of, read_record, slowest, write_record

SMALL = Case("all_reduce", 2, "float32", 8)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    overlaps = [Overlap(SMALL, "torch", 16, 1.0, 2.0, 3.0, 9), Overlap(SMALL, "gloo", reason="has none")]
    written = record({(SMALL, "torch"): 1.5}, [Result(SMALL, "gloo", "cannot", "has no such thing")], overlaps)
    file = tmp_path / "result.json"
    write_record(written, file)
    read = read_record(file)
    assert read == written
    assert read.results[0].figures is not None


def test_the_fields_are_those_that_the_page_documents(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    write_record(
        record(
            {(SMALL, "torch"): 1.5},
            [Result(SMALL, "gloo", "cannot", "why")],
            [Overlap(SMALL, "torch", 16, 1.0, 2.0, 3.0, 9)],
        ),
        file,
    )
    read = json.loads(file.read_text())
    page = (Path(__file__).parents[2] / "docs" / "performance_notebook.md").read_text(encoding="utf-8")
    keys = {
        *read,
        *read["machine"],
        *(key for part in ("contenders", "results", "overlaps") for one in read[part] for key in one),
    }
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"format": 0}'])
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"other\.json"):
        read_record(file)


@pytest.mark.parametrize("field", ["median_us", "samples", "rounds_us", "size"])
def test_a_field_of_another_type_is_told(tmp_path: Path, field: str) -> None:
    file = tmp_path / "other.json"
    write_record(record({(SMALL, "torch"): 1.5}), file)
    read = json.loads(file.read_text())
    read["results"][0][field] = ["x"]
    file.write_text(json.dumps(read))
    with pytest.raises(ValueError, match="not a whole result"):
        read_record(file)


def test_of_each_sample_the_slowest_rank_counts() -> None:
    assert slowest([[1.0, 5.0, 3.0], [2.0, 4.0, 3.5]]) == [2.0, 5.0, 3.5]


def test_ranks_that_disagree_on_the_number_of_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        slowest([[1.0, 2.0], [1.0]])


def test_median_and_quartiles_are_of_all_rounds_together() -> None:
    figures = figures_of([[1e-6, 9e-6], [3e-6], [5e-6, 7e-6]])
    assert (figures.lower_quartile, figures.median, figures.upper_quartile) == pytest.approx((3, 5, 7))
    assert figures.minimum == pytest.approx(1)
    assert figures.samples == 5
    assert figures.rounds == pytest.approx([5, 3, 6])


def test_one_outlier_does_not_move_the_median() -> None:
    assert figures_of([[1e-6] * 9 + [1.0]]).median == pytest.approx(1)


def test_one_sample_is_its_own_quartiles() -> None:
    figures = figures_of([[2e-6]])
    assert (figures.lower_quartile, figures.median, figures.upper_quartile) == pytest.approx((2, 2, 2))


def test_an_overlap_is_compared_with_the_longer_part() -> None:
    assert Overlap(Case("all_reduce", 2, "float32", 8), "x", 16, 10.0, 20.0, 30.0, 1).ratio == 1.5
