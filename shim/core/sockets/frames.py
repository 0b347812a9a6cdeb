"""Frames: messages of a kind and a body, for control connections and for stores; each with a checksum where the two ends have a secret.

A frame is 4 bytes with the body's length, 1 with the kind, the body, and, where there is a secret, 16 bytes of an HMAC over
the frame's number, its header and its body. The number makes a frame that was repeated, left out or moved fail.
"""

from __future__ import annotations

import hmac
import socket
import struct
from array import array
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Generic, TypeVar

LARGEST = 64 << 20
"""The most bytes that a body has."""

_HEADER = struct.Struct("<IB")
_NUMBER = struct.Struct("<Q")
_SUM = 16
_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")
_Kind = TypeVar("_Kind", bound=IntEnum)


class BadFrame(ValueError):
    """The bytes are no frame that the other end can have sent."""


class Sealing:
    """Makes the frames that one end sends. Not thread-safe: the frames have to be sent in the order in which they were made."""

    def __init__(self, key: bytes | None) -> None:
        self._base = None if key is None else hmac.new(key, digestmod="sha256")
        self._number = 0

    def seal(self, kind: IntEnum, pieces: Sequence[bytes]) -> list[bytes]:
        """Return the frame with *pieces* as its body, as buffers to send one after another; the pieces are not copied."""
        header = _HEADER.pack(sum(map(len, pieces)), kind)
        if self._base is None:
            return [header, *pieces]
        checksum = self._base.copy()
        checksum.update(_NUMBER.pack(self._number) + header)
        for piece in pieces:
            checksum.update(piece)
        self._number += 1
        return [header, *pieces, checksum.digest()[:_SUM]]


class Opening(Generic[_Kind]):
    """Takes apart what one end receives, whose frames are of *kinds* and have bodies of at most ``largest`` bytes."""

    def __init__(self, kinds: type[_Kind], key: bytes | None) -> None:
        self._kinds = kinds
        self._base = None if key is None else hmac.new(key, digestmod="sha256")
        self._number = 0
        self._buffer = bytearray()
        self.largest = LARGEST

    def feed(self, data: bytes) -> Iterator[tuple[_Kind, bytes]]:
        """Yield the frames that are whole with *data*. Raises BadFrame."""
        self._buffer += data
        at, end = 0, len(self._buffer)
        around = _HEADER.size + (0 if self._base is None else _SUM)
        try:
            while end - at >= _HEADER.size:
                length, number = _opened_header(self._buffer, at, self.largest)
                kind = self._kind(number)  # before the body has come, which a stranger could let grow
                if end - at < around + length:
                    break
                start, at = at, at + around + length
                yield kind, self._opened(start, length)
        finally:
            del self._buffer[:at]

    def _kind(self, number: int) -> _Kind:
        try:
            return self._kinds(number)
        except ValueError:
            raise BadFrame(f"a frame of kind {number} came, and there is none") from None

    def _opened(self, start: int, length: int) -> bytes:
        first = start + _HEADER.size
        body = bytes(memoryview(self._buffer)[first : first + length])
        if self._base is not None:
            checksum = self._base.copy()
            checksum.update(_NUMBER.pack(self._number) + self._buffer[start:first])
            checksum.update(body)
            self._number += 1
            if not hmac.compare_digest(checksum.digest()[:_SUM], bytes(self._buffer[first + length :][:_SUM])):
                raise BadFrame("a frame came whose checksum is wrong")
        return body


def _opened_header(data: bytes | bytearray, at: int = 0, largest: int = LARGEST) -> tuple[int, int]:
    length, kind = _HEADER.unpack_from(data, at)
    if length > largest:
        raise BadFrame(f"a frame of {length} bytes came, and {largest} is the most")
    return length, kind


def receive_frame(sock: socket.socket) -> tuple[int, bytes]:
    """Wait for the next frame, without a checksum, on a socket that blocks, and return its kind and body. Raises BadFrame."""
    length, kind = _opened_header(receive(sock, _HEADER.size))
    return kind, receive(sock, length)


def receive(sock: socket.socket, size: int) -> bytes:
    """Wait for the next *size* bytes on a socket that blocks. Raises ConnectionError where it is closed before."""
    received = bytearray(size)
    view = memoryview(received)
    while view:
        count = sock.recv_into(view)
        if not count:
            raise ConnectionError("it has closed the connection")
        view = view[count:]
    return bytes(received)


def packed_text(text: str) -> bytes:
    """Return *text* as a field of a body; what is longer than 65,535 bytes is cut."""
    data = text.encode(errors="replace")[:0xFFFF]
    return _U16.pack(len(data)) + data


def packed_ranks(ranks: Sequence[int]) -> bytes:
    """Return *ranks* as a field of a body."""
    return _U32.pack(len(ranks)) + array("I", ranks).tobytes()


def packed_values(values: Sequence[bytes]) -> bytes:
    """Return a whole body of *values*."""
    return b"".join(piece for value in values for piece in (_U32.pack(len(value)), value))


class Fields:
    """Reads the fields of a body one after another. Its methods raise BadFrame where the body ends too early."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, count: int) -> bytes:
        first, self._at = self._at, self._at + count
        if self._at > len(self._body):
            raise BadFrame(f"a field of {count} bytes ends behind its frame")
        return self._body[first : self._at]

    def number(self) -> int:
        (number,) = _U32.unpack(self.take(_U32.size))
        return int(number)

    def text(self) -> str:
        (length,) = _U16.unpack(self.take(_U16.size))
        return self.take(length).decode(errors="replace")

    def ranks(self) -> list[int]:
        return array("I", self.packed_ranks()[_U32.size :]).tolist()

    def packed_ranks(self) -> bytes:
        """Return a field of ranks as it was packed: it can be compared at less cost."""
        first = self._at
        self.take(self.number() * array("I").itemsize)
        return self._body[first : self._at]

    def values(self) -> list[bytes]:
        """Return all that follows, where it is values."""
        found = []
        while self._at < len(self._body):
            found.append(self.take(self.number()))
        return found

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)
