"""Frames, taken apart as they were made, and refused where they were changed on the way."""

from __future__ import annotations

import pytest

from shim.core.control.frames import LARGEST, BadFrame, Fields, Kind, Opening, Sealing, packed_ranks, packed_text
from shim.core.control.knocking import shown_outcomes
from shim.core.control.peers import shown_ranks

KEY = b"a key of the session"


def frames(key: bytes | None) -> list[bytes]:
    sealing = Sealing(key)
    return [b"".join(sealing.seal(kind, [b"one ", b"two"])) for kind in (Kind.PUT, Kind.PUT, Kind.TELL)]


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_frames_arrive_however_they_are_cut(key: bytes | None, step: int) -> None:
    data, opening = b"".join(frames(key)), Opening(key)
    got = [frame for first in range(0, len(data), step) for frame in opening.feed(data[first : first + step])]
    assert got == [(kind, b"one two") for kind in (Kind.PUT, Kind.PUT, Kind.TELL)]


def test_every_changed_byte_is_seen() -> None:
    first = frames(KEY)[0]
    for at in range(4, len(first)):  # another length waits for more, or ends elsewhere
        changed = bytearray(first)
        changed[at] ^= 1
        with pytest.raises(BadFrame, match="checksum is wrong"):
            list(Opening(KEY).feed(bytes(changed)))


@pytest.mark.parametrize("order", [[0, 0], [1], [0, 2], [1, 0]])
def test_frames_cannot_be_repeated_left_out_or_moved(order: list[int]) -> None:
    made = frames(KEY)
    with pytest.raises(BadFrame, match="checksum is wrong"):
        list(Opening(KEY).feed(b"".join(made[number] for number in order)))


def test_another_key_opens_nothing() -> None:
    with pytest.raises(BadFrame, match="checksum is wrong"):
        list(Opening(b"another key").feed(frames(KEY)[0]))


def test_lengths_and_kinds_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadFrame, match=f"a frame of {LARGEST + 1} bytes came"):
        list(Opening(None).feed((LARGEST + 1).to_bytes(4, "little") + b"\1"))
    with pytest.raises(BadFrame, match="kind 99"):
        list(Opening(None).feed(bytes(4) + b"\x63"))


def test_fields_are_read_as_they_were_packed() -> None:
    fields = Fields(packed_text("näme") + packed_ranks([3, 1, 70000]) + b"rest")
    assert (fields.text(), fields.ranks(), fields.rest()) == ("näme", [3, 1, 70000], b"rest")
    for body in (b"\5\0abc", b"\1"):
        with pytest.raises(BadFrame, match="ends behind its frame"):
            Fields(body).text()
    with pytest.raises(BadFrame, match="ends behind its frame"):
        Fields(b"\xff\xff\xff\xff1234").ranks()


def test_ranks_and_outcomes_are_shown_short() -> None:
    assert [shown_ranks(ranks) for ranks in ([2], [1, 0], [5, 4, 3, 9], [0, 2, 4], range(1000))] == [
        "rank 2",
        "ranks 0 and 1",
        "ranks 3-5 and 9",
        "ranks 0, 2 and 4",
        "ranks 0-999",
    ]
    outcomes = {"a:1": "silent", "a:2": "refused", "a:3": "refused"}
    assert shown_outcomes(outcomes) == "a:1: silent; a:2, a:3: refused"
