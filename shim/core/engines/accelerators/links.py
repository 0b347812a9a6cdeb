"""The backends of torch's that one group has for an accelerator: made when they are first needed, watched, and ended all together."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from shim.core.engines.accelerators.backends import TorchBackend
from shim.core.engines.accelerators.meeting import Meeting
from shim.core.engines.devices.links import loss_in
from shim.core.engines.network.threads import begin_thread
from shim.errors import EngineError, PeerLostError, ShimError, StateError, TensorError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine

__all__ = ["BackendLinks", "Link"]

_BETWEEN_LOOKS = 0.1  # seconds
_UNTIL_WORD_OF_LOSS = 1.0  # seconds until a backend's failure is its own, and not the sign of a lost rank
_AFTER_LEAVING = 30.0  # seconds that closing waits for operations with a rank that has left


class Link(NamedTuple):
    """A *backend* of some ranks, and the *stream* on which its operations are waited for."""

    backend: Any
    stream: Any
    meeting: Meeting


class BackendLinks:
    """See ``Links``. Those of rank *rank* in the group that *under* serves in host memory, by *torch_backend* on devices called *device*."""

    def __init__(self, under: Engine, rank: int, size: int, torch_backend: TorchBackend, device: str) -> None:
        self.under, self.rank, self.size = under, rank, size
        self._torch: Any = sys.modules["torch"]
        self._torch_backend, self._kind = torch_backend, device
        self._process = os.getpid()
        self._device: Any = None
        self._made: dict[tuple[int, ...], Link] = {}
        self._keeping = threading.Lock()  # of what follows
        self._under_way: deque[tuple[Any, Any]] = deque()  # the ends of operations, and their tensors
        self._being_put = 0  # operations, in which a backend may wait on the host
        self._failure: ShimError | None = None
        self.ended_by = ""
        self._is_closed = threading.Event()
        self._watch = begin_thread("shim accelerator watch", self._look_after)

    def settle_device(self, number: int) -> None:
        """See ``Links``."""
        if self._device is None:
            self._device = self._torch.device(self._kind, number)
        if self._device.index != number:
            raise TensorError(
                f"the tensors must be on {self._device}, which this rank uses in the group, got tensors on {self._kind}:{number}\n"
                "Make another group for another device."
            )

    def of(self, members: Sequence[int], tag: int) -> Link:
        """Return the link of the ranks *members*, who all ask for it at once when it is first needed. Nobody else uses *tag* between them."""
        key = tuple(members)
        if key not in self._made:
            rank = key.index(self.rank)
            meeting = Meeting(self.under, key, rank, tag)
            name = f"shim {meeting.name}"
            backend = self._connected(lambda: self._torch_backend.make(meeting.store, name, rank, len(key)))
            self._made[key] = Link(backend, self._torch.Stream(self._device), meeting)
        self.check_intact()
        return self._made[key]

    def _connected(self, make: Callable[[], Any]) -> Any:
        """Return what *make* returns, for which some backends wait for the other ranks. Raises what ends the links meanwhile."""
        made: list[Any] = []

        def connect() -> None:
            try:
                made.append(make())
            except BaseException as error:
                made.append(error)

        thread = begin_thread("shim accelerator connecting", connect)
        while thread.is_alive():
            self.check_intact()
            thread.join(_BETWEEN_LOOKS)
        if isinstance(made[0], BaseException):
            raise made[0]
        return made[0]

    def event_before(self, request: Request) -> Any:
        """See ``Links``; the current stream is torch's."""
        del request
        return self._event_behind(self._current_stream())

    def order_after(self, end: Any, request: Request) -> None:
        """See ``Links``."""
        del request
        if self._failure is not None and not self.is_reached(end):
            self.check_intact()
        end.wait(self._current_stream())

    def is_reached(self, end: Any) -> bool:
        """See ``Links``."""
        return bool(end.query())

    def check_intact(self) -> None:
        """See ``Links``."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def put(self, make: Callable[[], Link], begin: Any, kept: Any, move: Callable[[Any], object]) -> Any:
        """Have *move* put operations of a backend on the stream of the link that *make* gives, behind *begin*, and return their end.

        The tensors *kept* stay until it is reached.
        """
        with self._keeping:
            self.check_intact()
            self._being_put += 1
        try:
            link = make()
            with link.stream:
                begin.wait(link.stream)
                move(link.backend)
                end = self._event_behind(link.stream)
        except RuntimeError as error:  # of torch
            raise self._failure_behind(error) from None
        finally:
            with self._keeping:
                self._being_put -= 1
        with self._keeping:
            self._under_way.append((end, kept))
        return end

    def end(self, error: ShimError) -> None:
        """See ``Links``."""
        with self._keeping:
            self._failure = self._failure or error
            self.ended_by = self.ended_by or str(error)
        self._abort()

    def _abort(self) -> None:
        for link in list(self._made.values()):
            with suppress(RuntimeError, NotImplementedError):  # of backends that cannot
                link.backend.abort()

    def close(self, why: str) -> None:
        """Wait for what is on the device, or end it because of *why*, if any; nothing is begun from now on."""
        if os.getpid() != self._process:
            return
        if why:
            self.end(EngineError(why))
        began = time.monotonic()
        while self._failure is None and not self._let_go():
            if time.monotonic() - began > _AFTER_LEAVING and any(map(self.under.has_left, range(self.size))):
                self.end(PeerLostError("operations on devices were ended: another rank has left without its part"))
            time.sleep(0.001)
        has_failed = self._failure is not None
        self._failure = self._failure or StateError("the group was closed")
        self._is_closed.set()
        self._watch.join()
        for _, link in sorted(self._made.items()):  # in the same order on all ranks, who may wait for each other
            if not has_failed:
                with suppress(RuntimeError, NotImplementedError):
                    link.backend.shutdown()
            link.meeting.close()
        self._made.clear()
        self._under_way.clear()

    def _current_stream(self) -> Any:
        return self._torch.accelerator.current_stream(self._device)

    def _event_behind(self, stream: Any) -> Any:
        event = self._torch.Event(self._device)
        event.record(stream)
        return event

    def _failure_behind(self, error: RuntimeError) -> ShimError:
        """Return why torch's backend raised *error*: most often because a rank is lost, of which this one may hear a moment later."""
        until = time.monotonic() + _UNTIL_WORD_OF_LOSS
        while self._failure is None and time.monotonic() < until:
            time.sleep(0.002)
        return self._failure or EngineError(
            f"{self._torch_backend.name} failed: {str(error).partition(chr(10))[0]}\nThe group can no longer be used."
        )

    def _look_after(self) -> None:
        while not self._is_closed.wait(_BETWEEN_LOOKS):
            self._let_go()
            if self._failure is None and (loss := loss_in(self.under, self.rank, self.size)) is not None:
                self.end(loss)
            elif self._failure is not None and self._being_put:
                self._abort()  # of what was begun since

    def _let_go(self) -> bool:
        """Let the tensors go that no stream uses any more, and tell whether there are none left."""
        ended = []  # their memory is given back when the lock is not held
        with self._keeping:
            while self._under_way and self.is_reached(self._under_way[0][0]):
                ended.append(self._under_way.popleft())
            return not self._under_way
