"""When a rank hears that another one has left: not before the arrivals that this one has sent, which may be slower."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

from shim.core.engines.network import carrier as carriers
from shim.core.engines.network.carrier import Carrier

LEFT = 1


class Group:
    """Notes what it hears of the others, as the native group takes it. It has arrived at operation 1, and heard of nobody else there."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.has_heard_of_all = False

    def sequence(self) -> int:
        return 1

    def exchanged(self) -> int:
        return int(self.has_heard_of_all)

    def take_ending(self, rank: int, *words: Any) -> None:
        self.heard.append(f"rank {rank} left")


def carrier_of(group: Any) -> Carrier:
    place: Any = SimpleNamespace(ranks=(0, 1), rank=0, key="test")
    carrier = Carrier(SimpleNamespace(is_gone=lambda rank: False), place, [0])  # type: ignore[arg-type]
    carrier._group = group
    return carrier


def hear_of_the_end(exchanged: int) -> tuple[list[str], Group]:
    """Return what is heard 0.2 s after rank 1 has left, having had the arrivals of *exchanged* operations, and what takes the rest."""
    group = Group()
    carrier_of(group)._hear(1, json.dumps(["ended", False, exchanged, [], LEFT, -1, "", True]).encode())
    time.sleep(0.2)
    before = list(group.heard)
    group.has_heard_of_all = True
    return before, group


class Messages:
    """Of which one is to come."""

    def __init__(self) -> None:
        self.has_come = False

    def is_due(self, peer: int, sent: int) -> bool:
        return (peer, sent) == (1, 7) and not self.has_come


def test_who_has_sent_a_message_is_told_of_after_it() -> None:
    group = Group()
    group.has_heard_of_all = True
    messages: Any = Messages()
    carrier = carrier_of(group)
    carrier.messages = messages
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
    until(lambda: group.heard == ["rank 1 left"])


def test_who_left_before_is_soon_told_of(monkeypatch: Any) -> None:
    monkeypatch.setattr(carriers, "_ON_ITS_WAY", 0.01)
    before, _ = hear_of_the_end(exchanged=0)
    assert before == ["rank 1 left"]
