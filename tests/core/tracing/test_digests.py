"""Digests: the same for the same elements however they lie, and others for others."""

from __future__ import annotations

import numpy as np
import pytest

from shim.core.engines.recording.digests import digest_of


def test_values_in_files_stay_what_they_are() -> None:
    assert [digest_of(bytearray(range(size))) for size in (0, 1, 8, 31, 32, 33, 100)] == VALUES


VALUES = [
    8013906345249100810,
    103459183644056048,
    14050665008270772874,
    6554027237690011615,
    1522769136747704336,
    523748016793010728,
    6113985817553330685,
]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 31, 32, 33, 64, 100])
def test_every_bit_counts_and_every_place(size: int) -> None:
    content = bytearray(range(size))
    seen = {digest_of(content), digest_of(content + b"\0"), digest_of(content[:-1])}
    for place in range(size):
        for bit in range(8):
            content[place] ^= 1 << bit
            seen.add(digest_of(content))
            content[place] ^= 1 << bit
    assert len(seen) == 3 + 8 * size
    zeros = {digest_of(bytearray(count)) for count in range(200)}
    assert len(zeros) == 200


@pytest.mark.parametrize("cuts", [[], [1], [31], [32], [33], [5, 40], [0, 0, 64, 64], list(range(0, 100, 3))])
def test_how_they_are_divided_does_not_count(cuts: list[int]) -> None:
    content = np.random.default_rng(1).integers(0, 256, 100, dtype=np.uint8)
    assert digest_of(np.split(content, cuts)) == digest_of(content)
    assert digest_of(np.split(content[::-1], cuts)) == digest_of(content[::-1].copy()) != digest_of(content)


def test_elements_count_in_row_major_order() -> None:
    array = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    assert digest_of(np.asfortranarray(array)) == digest_of(array) == digest_of(array.reshape(-1))
    assert digest_of(array.T) == digest_of(array.T.copy()) != digest_of(array)
    assert digest_of(np.broadcast_to(np.float32(7), (5,)).copy()) == digest_of(np.full(5, 7, np.float32))


@pytest.mark.parametrize("wrong", ["text", 7, None, [np.zeros(2), "text"]])
def test_what_cannot_be_read_has_none(wrong: object) -> None:
    assert digest_of(wrong) is None
