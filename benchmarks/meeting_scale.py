"""Time a meeting, and one exchange among all its ranks, as a new group takes it, with simulated ranks in one process.

    python3 benchmarks/meeting_scale.py [RANKS] [--address HOST:PORT]

Rank 0 and its hub are the product's. So are the other ranks' connections, but one thread serves all of them, and a few threads join and
exchange for them. So this process does the work of all ranks: the hub's part is what a job of so many hosts would wait for.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from shim.core.control import Control, Meeting, meet
from shim.core.control.frames import Kind
from shim.core.control.inbox import Request
from shim.core.control.links import RankLink
from shim.core.control.meeting import Patience
from shim.core.control.other_ranks import enter
from shim.core.sockets.connection import Connection
from shim.core.sockets.frames import packed_ranks, packed_text
from shim.core.sockets.loop import Loop

_TIMEOUT = 120.0
_PAYLOAD = bytes(64)


class Simulation:
    """Ranks 1 to *size* - 1 of a job at *address*, and how many frames went from and to the hub, by kind, with their bytes."""

    def __init__(self, size: int, address: str) -> None:
        self.size = size
        self._address, self._key = address, f"meeting_scale {os.getpid()}"
        self.frames: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self._loop = Loop("simulated ranks")
        self._loop.start()
        self._ranks: dict[int, tuple[Control, RankLink]] = {}
        self._count_frames()

    def meet(self) -> Control:
        """Let all ranks meet and return rank 0's control connections."""
        with ThreadPoolExecutor(5) as threads:
            first = threads.submit(meet, self._job(0), _TIMEOUT)
            for rank in range(1, self.size):
                threads.submit(self._enter, rank)
            control = first.result()
        for other, _ in self._ranks.values():
            assert other.met.wait(time.monotonic() + _TIMEOUT)
        assert all(len(self._ranks[rank][0].peers) == self.size for rank in (1, self.size - 1))
        return control

    def exchange(self, control: Control) -> None:
        """Let all ranks exchange some bytes."""
        members = list(range(self.size))
        head = packed_text("group") + packed_ranks(members)
        requests = []
        for other, link in self._ranks.values():
            request = Request()
            other._requests[1] = request
            requests.append(request)
            link.send(Kind.EXCHANGE, (1).to_bytes(4, "little"), head, _PAYLOAD)
        assert control.exchange("group", members, _PAYLOAD, _TIMEOUT) == [_PAYLOAD] * self.size
        assert all(request.wait(time.monotonic() + _TIMEOUT) for request in requests)
        assert all(len(request.answer[1]) >= len(_PAYLOAD) * self.size for request in requests)

    def leave(self, control: Control) -> None:
        """Let all ranks leave, one straight after another, and wait until the hub has told rank 0 of each."""
        for _, link in self._ranks.values():
            link.send(Kind.LEAVE, packed_text("done"))
        while not all(control.is_gone(rank) for rank in self._ranks):
            time.sleep(0.001)

    def close(self, control: Control) -> None:
        control.close()
        self._loop.stop()
        self._loop.join(5.0)

    def _job(self, rank: int) -> Meeting:
        return Meeting(
            rank, self.size, self._key, self._address, b"not so secret as others", b"facts of rank %d" % rank
        )

    def _enter(self, rank: int) -> None:
        job = self._job(rank)
        self._ranks[rank] = enter(job, Patience(job, _TIMEOUT, 0.0), self._loop)

    def _count_frames(self) -> None:
        sent = Connection.send

        def send(connection: Connection[Kind], kind: Kind, *pieces: bytes) -> None:
            self.frames[kind.name] += 1
            self.bytes[kind.name] += sum(map(len, pieces))
            sent(connection, kind, *pieces)

        Connection.send = send  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ranks", type=int, nargs="?", default=1000)
    parser.add_argument("--address", default="127.0.0.1:29400", help="'' for a unix socket")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    simulation = Simulation(options.ranks, options.address)
    steps = (("meeting", simulation.meet), ("exchange", simulation.exchange), ("leaving", simulation.leave))
    control: tuple[Control, ...] = ()
    for name, step in steps:
        simulation.frames.clear()
        simulation.bytes.clear()
        began = time.perf_counter()
        control = (made,) if (made := step(*control)) is not None else control
        seconds = time.perf_counter() - began
        frames = ", ".join(f"{count} {kind}" for kind, count in simulation.frames.items() if kind != "BEAT")
        handshakes = f", {3 * (options.ranks - 1)} in handshakes" if name == "meeting" else ""
        print(f"{name:9} {seconds:6.2f} s  {sum(simulation.bytes.values()) / 1e6:7.1f} MB  {frames}{handshakes}")
    simulation.close(*control)
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB of memory")


if __name__ == "__main__":
    main()
