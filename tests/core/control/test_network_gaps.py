"""How long a host may be out of reach, and who is lost with it. The kernel's signs of the other host are stood for; time is simulated where it matters."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ranks_in_threads import SECRET, assert_soon, free_address, world

from shim.core.control import USUAL_GAP, control
from shim.core.control.frames import Kind
from shim.core.groups import connections
from shim.core.sockets import connection
from shim.core.sockets.connection import Connection, Heart
from shim.errors import ArgumentError

STEP = 0.25  # seconds between two looks


class _Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class _Loop:
    """Calls what is to come later when it is told to."""

    def __init__(self) -> None:
        self.later: list[Callable[[], object]] = []

    def call_later(self, seconds: float, function: Callable[[], object]) -> None:
        self.later.append(function)

    def look(self) -> None:
        for function in [self.later.pop() for _ in list(self.later)]:
            function()


@contextmanager
def pair_over_tcp() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as one:
        other, _ = listener.accept()
        with other:
            yield one, other


def lost_after(monkeypatch: pytest.MonkeyPatch, gap: float, outage: float, idle: float) -> float:
    """Return how many seconds after the network went a connection counts as lost, which sent its last frame *idle* before; infinity where it does not.

    The other host answers at once, but for *outage* seconds.
    """
    clock, loop = _Clock(), _Loop()
    monkeypatch.setattr(connection, "time", clock)
    lost: list[float] = []
    with pair_over_tcp() as (one, _):
        line = Connection(loop, one, Kind, (None, None), lambda kind, body: None, lambda how, why: None)  # type: ignore[arg-type]
        heart = Heart(loop, Kind.BEAT, gap, lambda line, silence: lost.append(clock.now - went))  # type: ignore[arg-type]
        clock.now += 10
        line.send(Kind.BEAT)
        went = clock.now + idle
        sign = clock.now

        def silence() -> float:
            nonlocal sign
            if not went <= clock.now < went + outage:
                sign = clock.now if clock.now >= went + outage else max(sign, line.last_sent)
            return clock.now - sign

        monkeypatch.setattr(line, "silence", silence)
        heart.add(line)
        while not lost and clock.now < went + outage + 3 * gap and clock.now < went + 5 * gap:
            clock.now += STEP
            loop.look()
    return lost[0] if lost else math.inf


@pytest.mark.parametrize("idle", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("gap", [3.0, USUAL_GAP])
def test_a_gap_counts_from_the_first_unanswered_beat(monkeypatch: pytest.MonkeyPatch, gap: float, idle: float) -> None:
    assert lost_after(monkeypatch, gap, gap - STEP, idle) == math.inf
    assert gap <= lost_after(monkeypatch, gap, math.inf, idle) <= gap + 1 + 2 * STEP
    assert lost_after(monkeypatch, gap, 0, idle) == math.inf


def test_gloo_bears_five_seconds_and_so_does_the_usual_gap() -> None:
    assert USUAL_GAP > 5


def test_all_ranks_that_are_silent_on_a_host_are_lost_at_once() -> None:
    with world(5, free_address(), SECRET) as controls:
        told: list[int] = []
        controls[4].when_gone(told.append)
        hub: Any = controls[0]._link.hub  # type: ignore[union-attr]
        began = time.monotonic()

        def have_no_sign() -> None:
            for rank in (1, 2, 3):
                hub._links[rank].silence = lambda since=began - 0.1 * rank: time.monotonic() - since
            hub._links[4].silence = lambda: 0.0
            hub._heart._gap = 0.5

        hub.loop.call(have_no_sign)
        assert_soon(lambda: sorted(told) == [1, 2, 3])
        for rank in (1, 2, 3):
            assert "ranks 1-3) cannot be reached since" in controls[4].ending_of(rank)


@pytest.mark.parametrize("text", ["0.5", "-1", "nan", "inf", "long"])
def test_a_gap_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_NETWORK_GAP", text)
    with pytest.raises(ArgumentError, match=f"SHIM_NETWORK_GAP must be a number of seconds from 1 on, got '{text}'"):
        connections._network_gap()


def test_a_gap_is_what_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connections._network_gap() == 0
    monkeypatch.setenv("SHIM_NETWORK_GAP", "60")
    assert connections._network_gap() == 60


def test_who_is_asked_for_a_sign_is_waited_for_until_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_FOR_A_SIGN", 60.0)
    with world(3, free_address(), SECRET) as controls:
        controls[0].await_presence([1, 2])  # at once
        hub: Any = controls[0]._link.hub  # type: ignore[union-attr]
        link: Any = controls[2]._link
        stands, goes_on = threading.Event(), threading.Event()
        link.loop.call(lambda: (stands.set(), goes_on.wait(60.0), link.connection.close()))  # all before it can answer
        assert stands.wait(30.0)
        asking = threading.Thread(target=controls[1].await_presence, args=([2],))
        asking.start()
        asking.join(0.2)
        assert asking.is_alive()
        goes_on.set()
        asking.join(30.0)
        assert not asking.is_alive()
        assert controls[1].is_gone(2)
        assert hub.missing() == []
