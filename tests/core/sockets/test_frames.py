"""Frames, taken apart as they were made, and refused where they were changed on the way."""

from __future__ import annotations

from enum import IntEnum

import pytest

from shim.core.sockets.frames import (
    LARGEST,
    BadFrame,
    Fields,
    Opening,
    Sealing,
    packed_ranks,
    packed_text,
    packed_values,
)

KEY = b"a key of the session"


class Kind(IntEnum):
    PUT = 4
    TELL = 6


def frames(key: bytes | None) -> list[bytes]:
    sealing = Sealing(key)
    return [b"".join(sealing.seal(kind, [b"one ", b"two"])) for kind in (Kind.PUT, Kind.PUT, Kind.TELL)]


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_frames_arrive_however_they_are_cut(key: bytes | None, step: int) -> None:
    data, opening = b"".join(frames(key)), Opening(Kind, key)
    got = [frame for first in range(0, len(data), step) for frame in opening.feed(data[first : first + step])]
    assert got == [(kind, b"one two") for kind in (Kind.PUT, Kind.PUT, Kind.TELL)]


def test_every_changed_byte_is_seen() -> None:
    first = frames(KEY)[0]
    for at in range(4, len(first)):  # another length waits for more, or ends elsewhere
        changed = bytearray(first)
        changed[at] ^= 1
        with pytest.raises(BadFrame, match="and there is none" if at == 4 else "checksum is wrong"):
            list(Opening(Kind, KEY).feed(bytes(changed)))


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("header", [b"\xff\xff\xff\x00\xc8", b"\x09\x00\x00\x00\x04"], ids=["of no kind", "too long"])
def test_what_cannot_be_a_frame_is_refused_before_its_body_comes(key: bytes | None, header: bytes) -> None:
    opening = Opening(Kind, key)
    opening.largest = 8
    with pytest.raises(BadFrame):
        list(opening.feed(header))


@pytest.mark.parametrize("order", [[0, 0], [1], [0, 2], [1, 0]])
def test_frames_cannot_be_repeated_left_out_or_moved(order: list[int]) -> None:
    made = frames(KEY)
    with pytest.raises(BadFrame, match="checksum is wrong"):
        list(Opening(Kind, KEY).feed(b"".join(made[number] for number in order)))


def test_another_key_opens_nothing() -> None:
    with pytest.raises(BadFrame, match="checksum is wrong"):
        list(Opening(Kind, b"another key").feed(frames(KEY)[0]))


def test_lengths_and_kinds_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadFrame, match=f"a frame of {LARGEST + 1} bytes came"):
        list(Opening(Kind, None).feed((LARGEST + 1).to_bytes(4, "little") + b"\1"))
    with pytest.raises(BadFrame, match="kind 99"):
        list(Opening(Kind, None).feed(bytes(4) + b"\x63"))


def test_fields_are_read_as_they_were_packed() -> None:
    fields = Fields(packed_text("näme") + packed_ranks([3, 1, 70000]) + b"rest")
    assert (fields.text(), fields.ranks(), fields.rest()) == ("näme", [3, 1, 70000], b"rest")
    assert Fields(packed_values([b"one", b"", b"two"])).values() == [b"one", b"", b"two"]
    for body in (b"\5\0abc", b"\1"):
        with pytest.raises(BadFrame, match="ends behind its frame"):
            Fields(body).text()
    with pytest.raises(BadFrame, match="ends behind its frame"):
        Fields(b"\xff\xff\xff\xff1234").ranks()
