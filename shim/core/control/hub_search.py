"""How a rank finds rank 0's hub: it connects to the places where the hub may be, until one greets it as the hub of its job."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence

from shim.core.control.addresses import Place
from shim.core.control.authentication import HELLO_SIZE, Hello
from shim.core.sockets.listening import stranger_at

_SILENT = 0.3  # seconds after which a server that says nothing is another program's
_CONNECTING = 3.0
_NEXT = 0.05  # seconds after which the next place is tried, too: a port's other owner costs no more
_LONGEST_PAUSE = 0.25
_OTHER_JOB = "another job (are SHIM_SECRET, the port and the launcher's name of the run the same there?)"


class HubSearch:
    """A search for the hub of *job*. *sources* are, by family, the addresses to come from. ``outcomes`` say what each place did last."""

    def __init__(self, job: bytes, sources: dict[int, str]) -> None:
        self._job = job
        self.sources = sources
        self.outcomes: dict[str, str] = {}

    def until(
        self, deadline: float, places: Callable[[], Sequence[Place]], between: Callable[[], object]
    ) -> tuple[socket.socket, Hello] | None:
        """Return a connection to the hub, and its greeting; None at the *deadline*. *places* are asked for, and *between* called, in each round."""
        pause = 0.01
        while True:
            found = self._round(places(), deadline)
            if found is not None:
                return found
            between()
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _round(self, places: Sequence[Place], deadline: float) -> tuple[socket.socket, Hello] | None:
        """Try each place once: one after another, but the next while an earlier one is slow."""
        waiting = deque(place for place in places if not self.sources or place.family in self.sources)
        with selectors.DefaultSelector() as selector:
            try:
                return self._first_greeting(selector, waiting, deadline)
            finally:
                for key in list(selector.get_map().values()):
                    key.data.socket.close()

    def _first_greeting(
        self, selector: selectors.BaseSelector, waiting: deque[Place], deadline: float
    ) -> tuple[socket.socket, Hello] | None:
        next_at = time.monotonic()
        while waiting or selector.get_map():
            now = time.monotonic()
            if now >= deadline:
                return None
            if waiting and (now >= next_at or not selector.get_map()):
                attempt = _Attempt(waiting.popleft())
                if self._begun(attempt):
                    selector.register(attempt.socket, selectors.EVENT_WRITE, attempt)
                    next_at = now + _NEXT
                continue
            ends = [key.data.until for key in selector.get_map().values()]
            soonest = min(*ends, deadline, next_at if waiting else deadline)
            open_before = len(selector.get_map())
            for key, _ in selector.select(max(0.0, soonest - now)):
                hello = self._advanced(selector, key.data)
                if hello is not None:
                    selector.unregister(key.data.socket)
                    return key.data.socket, hello
            self._end_late(selector)
            if len(selector.get_map()) < open_before:
                next_at = now
        return None

    def _begun(self, attempt: _Attempt) -> bool:
        source = self.sources.get(attempt.place.family)
        try:
            if source is not None:
                attempt.socket.bind((source, 0))
            code = attempt.socket.connect_ex(attempt.place.address)
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code not in (0, errno.EINPROGRESS):
            self._note(attempt, _shown_error(code))
            attempt.socket.close()
            return False
        return True

    def _advanced(self, selector: selectors.BaseSelector, attempt: _Attempt) -> Hello | None:
        """Go on with an attempt whose socket is ready; return the greeting when it is whole and that of this job."""
        outcome = attempt.advanced()
        if isinstance(outcome, Hello):
            if outcome.job == self._job:
                return outcome
            outcome = f"is the hub of {_OTHER_JOB}"
        if outcome is None:
            selector.modify(attempt.socket, selectors.EVENT_READ, attempt)
        else:
            self._end(selector, attempt, outcome)
        return None

    def _end_late(self, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        for key in list(selector.get_map().values()):
            if key.data.until <= now:
                late = "does not greet (is it another program's?)" if key.data.is_connected else "does not answer"
                self._end(selector, key.data, late)

    def _end(self, selector: selectors.BaseSelector, attempt: _Attempt, outcome: str) -> None:
        selector.unregister(attempt.socket)
        attempt.socket.close()
        self._note(attempt, outcome)

    def _note(self, attempt: _Attempt, outcome: str) -> None:
        before = self.outcomes.get(attempt.place.shown, "")
        if _OTHER_JOB in before and _OTHER_JOB not in outcome:
            outcome = f"was the hub of {_OTHER_JOB}, and is gone"
        self.outcomes[attempt.place.shown] = outcome


class _Attempt:
    """A connection to a place, until what listens there has greeted."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.socket = socket.socket(place.family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.is_connected = False
        self.until = time.monotonic() + _CONNECTING
        self._said = b""

    def advanced(self) -> Hello | str | None:
        """Return the greeting, or why there will be none; None while it is not whole."""
        if not self.is_connected:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                return _shown_error(code)
            self.is_connected = True
            self.until = time.monotonic() + _SILENT
            if self.socket.family == socket.AF_UNIX:
                stranger = stranger_at(self.socket)
                return f"belongs to {stranger}" if stranger else None
            if self.socket.getsockname() == self.socket.getpeername():
                return "refused"  # a connection to a free local port may come to be one with itself
            return None
        try:
            data = self.socket.recv(HELLO_SIZE - len(self._said))
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            return _shown_error(error.errno or 0)
        if not data:
            return "closed the connection"
        self._said += data
        if len(self._said) < HELLO_SIZE:
            return None
        return Hello.unpacked(self._said) or "is another program's"


def _shown_error(code: int) -> str:
    if code == errno.ECONNREFUSED:
        return "refused"
    if code in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT):
        return f"cannot be reached ({os.strerror(code)})"
    return f"failed ({os.strerror(code)})"


def shown_outcomes(outcomes: dict[str, str]) -> str:
    """Return what the places did, those with one outcome together: "10.0.0.2:29501 ... 10.0.0.2:29515 (15 ports) refused"."""
    alike: dict[str, list[str]] = {}
    for place, outcome in outcomes.items():
        alike.setdefault(outcome, []).append(place)
    texts = []
    for outcome, places in alike.items():
        shown = ", ".join(places) if len(places) < 4 else f"{places[0]} ... {places[-1]} ({len(places)} places)"
        texts.append(f"{shown}: {outcome}")
    return "; ".join(texts)
