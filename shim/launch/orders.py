"""Between `shim run --hosts` and the `shim run` that it has started on each host: lines of JSON.

The first one writes to the standard input of the others: orders, then signals, and an empty line each second. These write to
their stderr, between the ranks' lines, what begins with ``MARK``: which ports are free, and in the end how the ranks ended.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shim.launch.output import Failure, OutputClosed, write_all

MARK = b"\x1eshim "
SILENCE = 60.0  # seconds without a line from the first one after which it, or its host, is taken for lost
_STDIN, _STDERR = 0, 2
_LONGEST = 1 << 16  # bytes that are read at once


@dataclass(frozen=True)
class Orders:
    """What all hosts of a job are told: its name *run*, the *address* where ranks meet, how many ranks each host has, by number, the *endpoints* of
    all ranks, and variables for their *environment*, the secret among them."""

    run: str
    address: str
    counts: list[int]
    endpoints: list[str]
    environment: dict[str, str]


def as_line(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line."""
    return json.dumps(message).encode() + b"\n"


def failure_of(told: Mapping[str, Any] | None) -> Failure | None:
    """Return the failure that is in a message, if any."""
    return None if told is None else Failure(**told)


class Channel:
    """The end of the `shim run` on a host: it reads orders from what was its standard input, and answers. Ranks find their standard input empty."""

    def __init__(self) -> None:
        self._source = os.dup(_STDIN)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, _STDIN)
        os.close(empty)
        self._unfinished = b""
        self._lines: list[bytes] = []
        self._is_at_end = False
        self.heard_at = time.monotonic()

    def fileno(self) -> int:
        return self._source

    def say(self, **message: Any) -> None:
        """Tell the one who gives orders. One who does not listen any more is seen elsewhere."""
        try:
            write_all(_STDERR, MARK + as_line(message))
        except OutputClosed:
            return

    def say_end(self, status: int, failure: Failure | None) -> None:
        self.say(ended=status, failure=None if failure is None else asdict(failure))

    def wait_for_orders(self) -> Orders:
        """Return the first orders. Ends this process where none come."""
        while not (messages := self.read()) and not self._is_at_end:
            select.select([self._source], [], [], SILENCE)
            if time.monotonic() - self.heard_at > SILENCE:
                break
        if not messages or "orders" not in messages[0]:
            sys.exit(1)
        self._lines = [as_line(message) for message in messages[1:]]
        return Orders(**messages[0]["orders"])

    def read(self) -> list[dict[str, Any]] | None:
        """Return the messages that are there, without waiting; None where no more can come."""
        lines, self._lines = self._lines, []
        while not self._is_at_end and select.select([self._source], [], [], 0)[0]:
            text = os.read(self._source, _LONGEST)
            self._is_at_end = not text
            self.heard_at = time.monotonic()
            *whole, self._unfinished = (self._unfinished + text).split(b"\n")
            lines += whole
        messages = [json.loads(line) for line in lines if line]
        return messages if messages or not self._is_at_end else None
