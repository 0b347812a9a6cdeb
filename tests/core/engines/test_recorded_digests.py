"""Digests: the same for the same elements however they lie, and others for others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shim.core.engines.recording.definitions import digest_of


def test_values_in_files_stay_what_they_are() -> None:
    contents = [bytearray(i % 251 for i in range(size)) for size in (0, 1, 8, 255, 256, 257, 700)]
    assert [digest_of(content, 1) for content in contents] == VALUES


VALUES = [
    10502741745002971385,
    6490665362793129935,
    1543045547858891011,
    4604435923350447136,
    3590742228991452120,
    8005163000756734818,
    306772782111021855,
]


def test_values_are_kept_in_files_named_by_their_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_TRACE_VALUES", str(tmp_path / "values"))
    array = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    parts = [array[0], np.empty((0, 2), np.float32), array[1].T[1:, ::2]]
    for tensors in (array, array.T, array[:, 1:, ::3], np.array(3.0), np.empty(0), parts):
        digest = digest_of(tensors, 1)
        content = b"".join(each.tobytes() for each in (tensors if isinstance(tensors, list) else [tensors]))
        assert (tmp_path / "values" / f"{digest:016x}").read_bytes() == content
    assert digest_of(array[::-1], 1) == digest_of(array[::-1].copy(), 1)  # negative strides are not kept, or are
    assert digest_of("no tensor", 1) is None


@pytest.mark.parametrize("size", [1, 7, 8, 9, 33, 100, 255, 256, 257, 600])
def test_every_bit_counts_and_every_place(size: int) -> None:
    content = bytearray(i % 251 for i in range(size))
    seen = {digest_of(content, 1), digest_of(content + b"\0", 1), digest_of(content[:-1], 1)}
    for place in range(size):
        for bit in range(8):
            content[place] ^= 1 << bit
            seen.add(digest_of(content, 1))
            content[place] ^= 1 << bit
    assert len(seen) == 3 + 8 * size
    zeros = {digest_of(bytearray(count), 1) for count in range(200)}
    assert len(zeros) == 200


@pytest.mark.parametrize("cuts", [[], [1], [255], [256], [257], [5, 300], [0, 0, 512, 512], list(range(0, 700, 7))])
def test_how_they_are_divided_does_not_count(cuts: list[int]) -> None:
    content = np.random.default_rng(1).integers(0, 256, 700, dtype=np.uint8)
    assert digest_of(np.split(content, cuts), 1) == digest_of(content, 1)
    assert digest_of(np.split(content[::-1], cuts), 1) == digest_of(content[::-1].copy(), 1) != digest_of(content, 1)


def test_elements_count_in_row_major_order() -> None:
    array = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    assert digest_of(np.asfortranarray(array), 1) == digest_of(array, 1) == digest_of(array.reshape(-1), 1)
    assert digest_of(array.T, 1) == digest_of(array.T.copy(), 1) != digest_of(array, 1)
    assert digest_of(np.broadcast_to(np.float32(7), (5,)).copy(), 1) == digest_of(np.full(5, 7, np.float32), 1)


def test_no_two_contents_have_equal_digests_under_every_key() -> None:
    """These two had equal ones: what the first word changes of a lane, the fifth takes back, wherever the lane begins."""
    odd = 0xD6E8FEB86659FD93
    taken_back = (1 << 28) * pow(odd, -1, 1 << 64) % (1 << 64)
    zeros, other = np.zeros(8, np.uint64), np.array([1 << 63, 0, 0, 0, taken_back, 0, 0, 0], np.uint64)
    keys = [1, 2, 1 << 63, (1 << 64) - 1, *range(100, 200)]
    assert all(digest_of(zeros, key) != digest_of(other, key) for key in keys)
    assert len({digest_of(zeros, key) for key in keys}) == len(keys)


@pytest.mark.parametrize("wrong", ["text", 7, None, [np.zeros(2), "text"]])
def test_what_cannot_be_read_has_none(wrong: object) -> None:
    assert digest_of(wrong, 1) is None
