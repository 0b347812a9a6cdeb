"""Gives an example a place of its own where the one that it names is shared by all programs of a machine: a port, a file in /tmp.

Two runs at once would meet there, and a run would find what another one has left. As with devices, only the runner does so, and says it.
"""

from __future__ import annotations

import contextlib
import random
import re
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from shim.conformance.examples.example import Example

__all__ = ["WHY_A_FOLDER", "WHY_A_PORT", "free_ports", "in_its_own_place"]

WHY_A_FOLDER = "the file that its ranks meet at lies in a folder of its own here, not in /tmp"
WHY_A_PORT = "the port that its ranks meet at is a free one here"
_FOLDER = re.compile(r"(\bFileStore\(\s*[\"']|\bfile://)/tmp(?=/)")
_PORT = re.compile(r"(\bTCPStore\(\s*[\"'][\w.]+[\"'],\s*|\btcp://[\w.]+:)(\d{4,5})\b")
_PORTS = range(20000, 30000)  # below those that the kernel gives to connections, which would take one before it is used


@contextlib.contextmanager
def in_its_own_place(example: Example) -> Iterator[tuple[Example, tuple[str, ...]]]:
    """Give *example* as it can run beside others, and why it was changed; its place is there until the block ends."""
    ports: dict[str, str] = {}
    reasons: dict[str, None] = {}

    def own_port(found: re.Match[str]) -> str:
        reasons[WHY_A_PORT] = None
        if found[2] not in ports:
            ports[found[2]] = str(free_ports(1)[0])
        return found[1] + ports[found[2]]

    def own_folder(own: str, found: re.Match[str]) -> str:
        reasons[WHY_A_FOLDER] = None
        return found[1] + own

    with tempfile.TemporaryDirectory(prefix="shim-example-") as own:
        steps = tuple(
            replace(step, source=_PORT.sub(own_port, _FOLDER.sub(partial(own_folder, own), step.source)))
            for step in example.steps
        )
        yield replace(example, steps=steps), tuple(reasons)


def free_ports(count: int) -> list[int]:
    """Return different ports of this machine that nobody listens at."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    raise OSError(f"this machine has no {count} free ports from {_PORTS.start} to {_PORTS.stop - 1}")
