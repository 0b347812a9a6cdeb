"""How an operation, and its result, is written as bytes: for a socket, and for a file.

A message is its length in four bytes, then a code in one, then each field as its length in four bytes and its bytes;
numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from shim.errors import ArgumentError

GREETING = b"shim-store 1\n"  # what both ends of a connection say first, and what a file begins with
MAX_MESSAGE = 64 << 20  # bytes; more in one operation, or in one result, is refused
LENGTH = struct.Struct("<I")


def body_of(code: int, fields: Sequence[bytes]) -> bytes:
    """Return *code* and *fields* as bytes, without the length. Raises ArgumentError for more than MAX_MESSAGE."""
    parts = [bytes((code,))]
    for field in fields:
        parts += [LENGTH.pack(len(field)), field]
    size = sum(map(len, parts))
    if size > MAX_MESSAGE:
        raise ArgumentError(f"keys and values must be at most {MAX_MESSAGE} bytes together, got {size}")
    return b"".join(parts)


def message_of(code: int, fields: Sequence[bytes]) -> bytes:
    """Return the message of *code* and *fields*."""
    body = body_of(code, fields)
    return LENGTH.pack(len(body)) + body


def parts_of(body: bytes) -> tuple[int, list[bytes]]:
    """Return the code and the fields of a message's *body*. Raises ArgumentError for what is none."""
    fields = []
    place = 1
    while place < len(body):
        start = place + LENGTH.size
        if start > len(body):
            break
        place = start + LENGTH.unpack_from(body, place)[0]
        fields.append(body[start:place])
    if place != len(body):
        raise ArgumentError(f"a message of {len(body)} bytes has fields of another length")
    return body[0], fields
