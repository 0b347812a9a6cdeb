"""A rank process of a contender: connects to the benchmark, and sleeps between the turns it is asked to take.

The process is started with the path of a socket; who it is, it learns there. What MPI's launcher made rank 1 is rank 1; elsewhere
``SHIM_RANK`` says so.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from shim.bench.libraries.base import Library, Place
from shim.bench.ranks.turn import OverlapTurn, StartingLine, Turn, take_overlap_turn, take_turn


@contextmanager
def short_path(file: Path) -> Iterator[str]:
    """Give a path to *file* that fits into an address, however long that of its folder is; it is good as long as the context."""
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)


_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SHIM_RANK")


@dataclass(frozen=True)
class Hello:
    """The first thing a rank process says."""

    rank: int
    pid: int


@dataclass(frozen=True)
class Start:
    """The first thing it is told: which library to open ("module:class"), where, and the file of the starting line."""

    library: str
    place: Place
    line: str


@dataclass(frozen=True)
class Ready:
    """What it says when the library is open, or why it is not."""

    versions: dict[str, str]
    error: str | None = None


def main() -> None:
    """Serve turns until the benchmark closes its end."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C at a terminal reaches all; the benchmark ends its ranks itself
    channel = socket.socket(socket.AF_UNIX)
    with short_path(Path(sys.argv[1])) as path:
        channel.connect(path)
    with Connection(channel.detach()) as benchmark:
        rank = next(int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ)
        benchmark.send(Hello(rank, os.getpid()))
        start = benchmark.recv()
        try:
            library = _open(start)
            line = StartingLine(start.line, rank, start.place.ranks, start.place.processors)
        except Exception:  # whatever a library raises is told in the table
            benchmark.send(Ready({}, traceback.format_exc()))
            return
        benchmark.send(Ready(library.versions()))
        with suppress(EOFError, OSError):
            while True:
                benchmark.send(_taken(library, line, benchmark.recv()))
        library.close()


def _open(start: Start) -> Library:
    module, _, name = start.library.partition(":")
    found = getattr(importlib.import_module(module), name)(start.place)
    assert isinstance(found, Library)
    return found


def _taken(library: Library, line: StartingLine, request: Turn | OverlapTurn) -> object:
    if isinstance(request, Turn):
        return take_turn(library, line, request)
    return take_overlap_turn(library, line, request)
