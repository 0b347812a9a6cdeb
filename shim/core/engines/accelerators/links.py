"""The backends of torch's that one group has for an accelerator: made when they are first needed, and ended all together."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from shim.core.engines.accelerators.backends import TorchBackend
from shim.core.engines.devices.watched_links import WatchedLinks
from shim.core.engines.network.store import ControlKeys, torch_store
from shim.core.engines.network.threads import begin_thread
from shim.core.job.stores import LocalStore
from shim.errors import EngineError, PeerLostError, ShimError, StateError, UnsupportedError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine

_UNTIL_WORD_OF_LOSS = 1.0  # seconds until a backend's failure is its own, and not the sign of a lost rank
_NAME_BYTES = 32
_UNTIL_ALL_ARE_THERE = 300.0  # seconds
_FOR_ABORTS = 10.0  # seconds, after which one that hangs is left to itself


class Meeting:
    """The ``store`` of the ranks *members* of the group that *under* serves, of which the caller is number *rank*; all of them make it at once.

    Nobody else uses *tag* between them. The first of them draws the ``name`` of the store, which lies in its process, or, where the group has
    several hosts, in that of the world's rank 0. Who waits for what another rank has to write gets what *check* raises.
    """

    def __init__(self, under: Engine, members: Sequence[int], rank: int, tag: int, check: Callable[[], object]) -> None:
        name = bytearray(secrets.token_hex(_NAME_BYTES // 2).encode())
        if rank > 0:
            under.receive(name, members[0], tag, True)
        self.name = f"shim {name.decode()}"
        control = under.control
        self._keys = LocalStore(self.name) if control is None else ControlKeys(control, self.name)
        self.store: Any = torch_store(self._keys, _UNTIL_ALL_ARE_THERE, check)
        if rank == 0:
            for member in members[1:]:
                under.send(name, member, tag, True)

    def close(self) -> None:
        """Let go of what it holds; a backend that still asks is told that the store is lost."""
        self._keys.close()


class Link(NamedTuple):
    """A *backend* of some ranks, who connected at *meeting*, and the *stream* on which its operations are put."""

    backend: Any
    stream: Any
    meeting: Meeting


class _Event:
    """See ``End``: an event of torch's behind what is on *stream* now."""

    is_cut_off = False

    def __init__(self, torch: Any, device: Any, stream: Any) -> None:
        self._event = torch.Event(device)
        self._event.record(stream)

    def make_wait(self, stream: Any) -> None:
        """Have what comes next in *stream* begin after it."""
        self._event.wait(stream)

    def is_reached(self) -> bool:
        try:
            return bool(self._event.query())
        except RuntimeError as error:
            raise EngineError(f"the device has failed: {_first_line(error)}") from None


class BackendLinks(WatchedLinks):
    """See ``WatchedLinks``. *ranks* are the world ranks of the group's members, *torch_backend* serves devices that torch calls *kind*."""

    def __init__(self, under: Engine, rank: int, ranks: Sequence[int], torch_backend: TorchBackend, kind: str) -> None:
        self._torch: Any = sys.modules["torch"]
        self._ranks, self._torch_backend = ranks, torch_backend
        self._made: dict[int | tuple[int, int], Link] = {}
        self._aborted: set[int | tuple[int, int]] = set()  # of the links made
        self._being_put = 0  # operations, in which a backend may wait on the host
        super().__init__(under, rank, len(ranks), kind)

    def on_device(self) -> AbstractContextManager[object]:
        """See ``WatchedLinks``; torch's events and streams know theirs."""
        return nullcontext()

    def of_all(self, tag: int) -> Link:
        """Return the link of all ranks, who make it at once when it is first needed. Nobody else uses *tag*."""
        return self._of(-1, range(self.size), tag)

    def of_two(self, direction: tuple[int, int], tag: int) -> Link:
        """Return the link for messages from the first rank of *direction* to the second one, as ``of_all`` does."""
        return self._of(direction, direction, tag)

    def _of(self, key: int | tuple[int, int], members: Sequence[int], tag: int) -> Link:
        if key not in self._made:
            made = self.connected(partial(self._connect, members, tag), lambda link: link.meeting.close())
            with self._keeping:
                if self._failure is None:
                    self._made[key] = made
            if key not in self._made:
                made.meeting.close()
        self.check_intact()
        return self._made[key]

    def _connect(self, members: Sequence[int], tag: int) -> Link:
        self._torch.accelerator.set_device_index(self.number)  # of this thread
        rank = members.index(self.rank)
        meeting = Meeting(self.under, members, rank, tag, self.check_intact)
        try:
            world_ranks = [self._ranks[member] for member in members]
            backend = self._torch_backend.make(meeting.store, meeting.name, rank, world_ranks)
            with suppress(AttributeError):  # of a backend written in Python
                backend.eager_connect_single_device(self._torch_device())  # where it can, before its first operation
            return Link(backend, self._torch.Stream(self._torch_device()), meeting)
        except BaseException:
            meeting.close()
            raise

    def current_stream(self, request: Request) -> Any:
        """See ``WatchedLinks``; it is torch's."""
        del request
        return self._torch.accelerator.current_stream(self._torch_device())

    def event_before(self, request: Request) -> Any:
        """See ``WatchedLinks``. Raises UnsupportedError in a graph, whose events no device can be asked about."""
        is_capturing = getattr(self._torch.get_device_module(self.kind), "is_current_stream_capturing", None)
        if is_capturing is not None and is_capturing():
            raise UnsupportedError(f"operations on {self.kind} cannot be captured in a graph")
        return super().event_before(request)

    def event_behind(self, stream: Any) -> _Event:
        return _Event(self._torch, self._torch_device(), stream)

    def put(self, make: Callable[[], Link], begin: _Event, kept: Any, move: Callable[[Any], object]) -> _Event:
        """Have *move* put operations of a backend on the stream of the link that *make* gives, behind *begin*, and return their end.

        Tensors that are *kept* stay until it is reached.
        """
        with self._keeping:
            self.check_intact()
            self._being_put += 1
        try:
            link = make()
            with link.stream:
                begin.make_wait(link.stream)
                move(link.backend)
                end = self.event_behind(link.stream)
        except EngineError:
            raise
        except Exception as error:  # of torch, of the backend, or of the store that is gone with a rank
            raise self._failure_behind(error) from None
        finally:
            with self._keeping:
                self._being_put -= 1
        self.keep(link.stream, end, kept)
        self.check_intact()  # what was ended meanwhile has no outputs
        return end

    def library_failure(self) -> str:
        """See ``WatchedLinks``: torch's backends tell nothing."""
        return ""

    def end(self, error: ShimError) -> None:
        """See ``WatchedLinks``. Not all backends can end what is on the device."""
        self._cut_off(error)
        self._abort_all()  # what was begun since, too

    def _abort_all(self) -> None:
        """Abort the backends at once: one may wait for a kernel that is queued behind another's (pytorch#119797)."""

        def abort(backend: Any) -> None:
            with suppress(RuntimeError):
                backend.abort()

        with self._keeping:
            new = [link.backend for key, link in self._made.items() if key not in self._aborted]
            self._aborted.update(self._made)
        until = time.monotonic() + _FOR_ABORTS
        try:
            threads = [begin_thread(f"shim {self.kind} ending", partial(abort, backend)) for backend in new]
        except RuntimeError:  # while the interpreter ends, Python 3.12 begins no threads
            threads = []
            for backend in new:
                abort(backend)
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def come_to_an_end(self, why: str) -> None:
        if why:
            self.end(EngineError(why))
        self.await_under_way()
        with self._keeping:
            is_intact = self._failure is None
            self._failure = self._failure or StateError("the group was closed")
            self._being_put += 1  # until nobody waits for another rank any more
        for _, link in sorted(self._made.items(), key=str):  # in one order on all ranks, who may wait for each other
            if is_intact:
                with suppress(RuntimeError):
                    link.backend.shutdown()
            link.meeting.close()
        self._made.clear()

    def is_open(self) -> bool:
        return self._failure is None

    def _torch_device(self) -> Any:
        return self._torch.device(self.kind, self.number)

    def _failure_behind(self, error: Exception) -> ShimError:
        """Return why torch's backend raised *error*: most often because a rank is lost, of which this one may hear a moment later."""
        until = time.monotonic() + _UNTIL_WORD_OF_LOSS
        while self._failure is None and time.monotonic() < until:
            time.sleep(0.02)
        left = [rank for rank in range(self.size) if self.under.has_left(rank)]
        if left and self._failure is None:
            lost = PeerLostError(
                f"{self.under.ending_of(left[0])}, and had not done its part of an operation on a device"
            )
            lost.ranks = tuple(left)
            return lost
        return self._failure or EngineError(
            f"{self._torch_backend.name} failed: {_first_line(error)}\nThe group can no longer be used."
        )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
