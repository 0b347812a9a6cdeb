"""What a recording's file holds: definitions, which are JSON, and calls of a fixed size that refer to them.

A file begins with ``MAGIC``. Every record begins with its kind and lies on a multiple of ``ALIGNMENT`` bytes; where zeros
begin, nothing more was recorded. A call is written when it begins and completed in place, so a file that a killed or
hanging process leaves shows what it was in. Times are nanoseconds of CLOCK_MONOTONIC, which the ranks of a host share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Any

MAGIC = b"SHIMTRC\x01"
VERSION = 2
SUFFIX = ".shimtrace"
ALIGNMENT = 8
DEFINITION, CALL = 1, 2
NO_RANK = -1

# As native/bindings/calls/call_records.cpp writes it: kind, definition, begin, state, error, end, when waiting began, digests of the
# inputs and outputs, source of a message, thread.
CALL_RECORD = Struct("<IIqIIqqQQiI")
_HEAD = Struct("<II")
CUT: dict[str, Any] = {"kind": "cut"}  # a definition that no file has

INPUT_DIGEST, OUTPUT_DIGEST = 0x10, 0x20  # beside a state: there is such a digest
IN_BACKGROUND = 0x40  # beside a state: the call was started
_STATES = 0xF


class State(IntEnum):
    """How far a call has come."""

    PREPARED = 1  # nothing was sent
    STARTED = 2  # goes on in the background
    RUNNING = 3  # the calling thread carries it out
    WAITING = 4  # the program waits for a call that it has started
    ENDED = 5
    FAILED = 6


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call as the file has it. ``definition`` and ``error`` are numbers of definitions, 0 is no error; times that are not known are 0."""

    definition: int
    begin: int
    state: State
    error: int
    end: int
    waited: int
    input_digest: int | None
    output_digest: int | None
    source: int
    thread: int
    in_background: bool


def definition_record(content: dict[str, Any]) -> bytes:
    """Return the bytes of a definition."""
    text = json.dumps(content, separators=(",", ":"), default=str).encode()
    padding = -(_HEAD.size + len(text)) % ALIGNMENT
    return _HEAD.pack(DEFINITION, len(text)) + text + b" " * padding


def records(data: bytes | memoryview) -> Iterator[dict[str, Any] | CallRecord]:
    """Yield what a file's *data* holds, in order, and CUT where its end is missing. Raises ValueError for what is no recording."""
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise ValueError("it does not begin as a recording does")
    place, has_ended = len(MAGIC), False
    while place + _HEAD.size <= len(data):
        kind, number = _HEAD.unpack_from(data, place)
        if kind == DEFINITION:
            end = place + _HEAD.size + number
            if end > len(data):
                break
            content = json.loads(bytes(data[place + _HEAD.size : end]))
            if not isinstance(content, dict):
                raise ValueError(f"the definition at byte {place} is no object")
            has_ended = has_ended or content.get("kind") == "end"
            yield content
            place = end + -end % ALIGNMENT
        elif kind == CALL:
            if place + CALL_RECORD.size > len(data):
                break
            yield _call(data, place)
            place += CALL_RECORD.size
        elif kind == 0:
            return
        else:
            raise ValueError(f"the record at byte {place} is of an unknown kind, {kind}")
    if not has_ended:  # a killed process leaves zeros
        yield CUT


def _call(data: bytes | memoryview, place: int) -> CallRecord:
    _, definition, begin, state, error, end, waited, inputs, outputs, source, thread = CALL_RECORD.unpack_from(
        data, place
    )
    return CallRecord(
        definition,
        begin,
        State(state & _STATES),
        error,
        end,
        waited,
        inputs if state & INPUT_DIGEST else None,
        outputs if state & OUTPUT_DIGEST else None,
        source,
        thread,
        bool(state & IN_BACKGROUND),
    )
