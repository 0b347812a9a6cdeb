"""Messages between a pool and its ranks: a length and as many bytes, on pipes and sockets."""

from __future__ import annotations

import io
import struct

_LENGTH = struct.Struct("<Q")


def read_message(stream: io.BufferedIOBase) -> bytes | None:
    """Return the next message, or None at the end of the stream."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    body = stream.read(length)
    return body if len(body) == length else None


def write_message(stream: io.BufferedIOBase, body: bytes) -> None:
    """Write a message that ``read_message`` returns on the other side."""
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()
