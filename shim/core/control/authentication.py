"""How a rank and rank 0's hub prove to each other that they have the secret, before either believes the other a word.

The hub speaks first, so that a server of another program, which a rank may find in the hub's place, gets nothing to misread::

    hub    -> member   HELLO   magic, hash of the job's key, protocol, whether it has a secret, nonce
    member -> hub      JOIN    magic, protocol, whether it has a secret, rank, size, nonce, proof
    hub    -> member   REPLY   status, proof, text

A proof is an HMAC-SHA256 with the secret over a label, HELLO and JOIN: over both nonces, the key's hash, rank and size. The labels differ,
so that no proof serves as the other. The keys for the frames that follow are made in the same way, one for each direction.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from enum import IntEnum
from typing import NamedTuple

PROTOCOL = 1
"""The version of everything that control connections carry. Ranks with different ones cannot meet."""

_MAGIC = b"shimctl\n"
_HELLO = struct.Struct("<8s16sH?32s")  # the first three fields stay in all versions
_JOIN = struct.Struct("<8sH?II32s")
_REPLY = struct.Struct("<B32sH")
_PROOF = 32
_NO_PROOF = bytes(_PROOF)

HELLO_SIZE, JOIN_SIZE, REPLY_SIZE = _HELLO.size, _JOIN.size + _PROOF, _REPLY.size
"""Bytes of each message; a reply's text comes on top."""


def hash_of_key(key: str) -> bytes:
    """Return what tells jobs apart in public."""
    return hashlib.sha256(b"shim job\0" + key.encode(errors="surrogateescape")).digest()[:16]


class Hello(NamedTuple):
    """The hub's first word."""

    job: bytes
    protocol: int
    has_secret: bool
    nonce: bytes

    @classmethod
    def new(cls, job: bytes, secret: bytes) -> Hello:
        return cls(job, PROTOCOL, bool(secret), secrets.token_bytes(32))

    def packed(self) -> bytes:
        return _HELLO.pack(_MAGIC, *self)

    @classmethod
    def unpacked(cls, data: bytes) -> Hello | None:
        """Return the hello in *data*; None where these bytes are another program's."""
        magic, *fields = _HELLO.unpack(data)
        return cls(*fields) if magic == _MAGIC else None


class Join(NamedTuple):
    """A member's answer, without its proof."""

    protocol: int
    has_secret: bool
    rank: int
    size: int
    nonce: bytes

    @classmethod
    def new(cls, rank: int, size: int, secret: bytes) -> Join:
        return cls(PROTOCOL, bool(secret), rank, size, secrets.token_bytes(32))

    def packed(self) -> bytes:
        return _JOIN.pack(_MAGIC, *self)

    @classmethod
    def unpacked(cls, data: bytes) -> tuple[Join, bytes] | None:
        """Return the join in *data* and its proof; None where these bytes are another program's."""
        magic, *fields = _JOIN.unpack(data[: _JOIN.size])
        return (cls(*fields), data[_JOIN.size :]) if magic == _MAGIC else None


class Status(IntEnum):
    """What the hub says to a join. A refusal's text is an error's, and has no proof where there is no common secret."""

    WELCOME = 0
    WRONG_SECRET = 1
    REFUSED = 2


class Reply(NamedTuple):
    """The hub's second word; its text follows."""

    status: int
    proof: bytes
    length_of_text: int

    @classmethod
    def packed_with(cls, status: Status, proof: bytes, text: str = "") -> bytes:
        data = text.encode(errors="replace")[:0xFFFF]
        return _REPLY.pack(status, proof, len(data)) + data

    @classmethod
    def unpacked(cls, data: bytes) -> Reply:
        return cls(*_REPLY.unpack(data))


class SessionKeys:
    """The proofs and the frames' keys of one connection; the latter are None, and proofs empty, without a secret."""

    def __init__(self, secret: bytes, hello: Hello, join: Join) -> None:
        self._secret = secret
        self._said = hello.packed() + join.packed()
        self.proof_of_member = self._made(b"member") or _NO_PROOF
        self.proof_of_hub = self._made(b"hub") or _NO_PROOF
        self.to_hub = self._made(b"frames to the hub")
        self.from_hub = self._made(b"frames from the hub")

    def _made(self, label: bytes) -> bytes | None:
        return hmac.digest(self._secret, b"shim " + label + b"\0" + self._said, "sha256") if self._secret else None
