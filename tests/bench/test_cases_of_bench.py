"""Cases: what their sizes count, and how their elements are shared out."""

from __future__ import annotations

import pytest

from shim.bench.cases import COLLECTIVES, DTYPES, SIZES, Case, size_text

RANKS = (2, 3, 4, 7, 8)


def test_sizes_go_from_8_bytes_to_256_megabytes() -> None:
    assert (SIZES[0], SIZES[-1]) == (8, 256 << 20)
    assert {64 << 10, 1 << 20, 16 << 20}.issubset(SIZES)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_size_can_be_shared_out(collective: str, dtype: str, ranks: int) -> None:
    for size in (8, 64, 4096):
        case = Case(collective, ranks, dtype, size)
        assert case.bytes in range(0 if collective == "barrier" else size, size + ranks * DTYPES[dtype])
        assert len(case.parts) == ranks
        assert 1 <= case.batch <= 32
        if collective in ("reduce_scatter", "all_to_all"):
            assert case.count % ranks == 0
        if collective == "reduce_scatter":
            assert case.output_count(0) * ranks == case.count
        if collective in ("all_gather", "all_gather_unequal"):
            assert case.output_count(0) == sum(case.parts) == case.count * ranks


def test_unequal_parts_differ_and_their_mean_is_the_size() -> None:
    parts = Case("all_gather_unequal", 4, "float32", 4096).parts
    assert sorted(set(parts)) == parts
    assert sum(parts) == 4 * 1024


def test_small_calls_are_timed_in_batches_and_large_ones_alone() -> None:
    assert Case("all_reduce", 2, "float32", 8).batch == 32
    assert Case("all_reduce", 2, "float32", 16 << 20).batch == 1


@pytest.mark.parametrize(("size", "text"), [(8, "8 B"), (4096, "4 KB"), (16 << 20, "16 MB"), (1536, "1.5 KB")])
def test_sizes_are_written_as_one_does(size: int, text: str) -> None:
    assert size_text(size) == text
