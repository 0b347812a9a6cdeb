"""When a rank hears that another one has left: not before the arrivals that this one has sent, which may be slower."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

from shim.core.engines.network import carrier as carriers
from shim.core.engines.network.carrier import Carrier
from shim.core.engines.network.link import Pending

LEFT = 1


class Group:
    """Notes what it hears of the others, as the native group takes it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def take_arrivals(self, packets: list[bytes]) -> bool:
        self.heard.append("arrivals")
        return True

    def take_ending(self, rank: int, *words: Any) -> None:
        self.heard.append(f"rank {rank} left")


class Slow:
    """A transfer that ends when the test says so."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def wait(self, seconds: float) -> bool:
        return self.may_end.wait(seconds)


def hear_of_the_end(exchanged: int) -> tuple[list[str], Group]:
    """Return what is heard 0.2 s after rank 1 has left, having had the arrivals of *exchanged* operations, and what takes the rest."""
    transfer = Slow()

    def gather(packet: bytes) -> Generator[Pending, None, list[bytes]]:
        yield transfer
        return [packet, packet]

    place: Any = SimpleNamespace(ranks=(0, 1), rank=0, key="test")
    carrier = Carrier(SimpleNamespace(is_gone=lambda rank: False), place, gather)  # type: ignore[arg-type]
    group: Any = Group()
    carrier._group = group
    carrier.arrived(b"", 1, False)
    carrier._hear(1, json.dumps(["ended", False, exchanged, [], LEFT, -1, "", True]).encode())
    time.sleep(0.2)
    before = list(group.heard)
    transfer.may_end.set()
    carrier.wait_for_exchange(lambda: None)
    return before, group


class Messages:
    """Of which one is to come."""

    def __init__(self) -> None:
        self.has_come = False

    def is_due(self, peer: int, sent: int) -> bool:
        return (peer, sent) == (1, 7) and not self.has_come


def test_who_has_sent_a_message_is_told_of_after_it() -> None:
    place: Any = SimpleNamespace(ranks=(0, 1), rank=0, key="test")
    carrier = Carrier(SimpleNamespace(is_gone=lambda rank: False), place, lambda packet: iter(()))  # type: ignore[arg-type]
    group: Any = Group()
    messages: Any = Messages()
    carrier._group, carrier.messages = group, messages
    carrier._hear(1, json.dumps(["ended", False, 0, [7, 0], LEFT, -1, "", True]).encode())
    time.sleep(0.1)
    assert group.heard == []
    messages.has_come = True
    until(lambda: group.heard == ["rank 1 left"])


def until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_who_had_all_arrivals_is_waited_for_as_long_as_they_take(monkeypatch: Any) -> None:
    monkeypatch.setattr(carriers, "_ON_ITS_WAY", 0.01)
    before, group = hear_of_the_end(exchanged=1)
    assert before == []
    until(lambda: len(group.heard) == 2)
    assert group.heard == ["arrivals", "rank 1 left"]


def test_who_left_before_is_soon_told_of(monkeypatch: Any) -> None:
    monkeypatch.setattr(carriers, "_ON_ITS_WAY", 0.01)
    before, _ = hear_of_the_end(exchanged=0)
    assert before == ["rank 1 left"]
