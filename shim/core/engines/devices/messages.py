"""Messages of tensors on devices. The host carries a header, by which sender and receiver find each other; then a library carries the data.

The header goes as any message of the group's engine in host memory does, so that tags, and receives from any rank, mean what they mean
there. Each direction between two ranks has a link and a stream of its own: data one way does not wait for data the other way.
The messages of one direction go one after the other, in the order in which they were begun, whatever their tags.
"""

from __future__ import annotations

import struct
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shim.core.engines.base import check_call
from shim.core.engines.network.threads import begin_thread
from shim.core.tensors.elements import DEVICE_MESSAGE, Elements
from shim.errors import CollectiveTimeoutError, EngineError, MismatchError, ShimError, StateError, UnsupportedError

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.base import Engine
    from shim.core.engines.devices.watched_links import WatchedLinks

_Links = TypeVar("_Links", bound="WatchedLinks")

_HEADER = struct.Struct("qq32s")  # the message's number, bytes and dtype
_BETWEEN_LOOKS = 0.1  # seconds


class _Direction:
    """The messages from one rank to another: how many were begun, and whose turn it is to be put on the stream."""

    def __init__(self) -> None:
        self.beginning = threading.Lock()
        self.begun = 0
        self._turn = 0
        self._changed = threading.Condition()

    @contextmanager
    def in_turn(self, number: int, links: WatchedLinks) -> Iterator[None]:
        """Wait for the messages before *number*, and let the next one go afterwards. Raises what has ended the links meanwhile."""
        with self._changed:
            while self._turn < number:
                links.check_intact()
                self._changed.wait(_BETWEEN_LOOKS)
        try:
            yield
        finally:
            with self._changed:
                self._turn = max(self._turn, number + 1)
                self._changed.notify_all()


class Messages(ABC, Generic[_Links]):
    """The messages of one rank in the group that *under* serves in host memory."""

    def __init__(self, under: Engine, links: _Links) -> None:
        self.under, self.links = under, links
        # By the sender and the receiver.
        self.directions: defaultdict[tuple[int, int], _Direction] = defaultdict(_Direction)

    @abstractmethod
    def put(self, direction: tuple[int, int], message: Message, is_wanted: bool) -> Any:
        """Put *message* on the stream of its direction, behind its begin, and return its end. What is not *wanted* is received all the same."""

    def check_form(self, tensor: Any) -> None:  # most libraries take all that ``check_call`` does
        """Raise TensorError where the library cannot be given *tensor*, of which nothing is wrong otherwise."""

    def send(self, tensor: Any, peer: int, tag: int, now: bool) -> Message | None:
        rank, size = self.links.rank, self.links.size
        request = check_call("broadcast", rank, size, inputs=tensor, root=rank, devices=True)
        self._check(request, peer, tensor)
        message = _Send(self, tensor, request, peer, tag)
        if not now:
            return message
        message.wait()
        return None

    def receive(self, tensor: Any, peer: int | None, tag: int, now: bool) -> Message | int:
        rank, size = self.links.rank, self.links.size
        other = (rank + 1) % size  # than this rank: the tensor is written
        request = check_call("broadcast", rank, size, inputs=tensor, root=other, devices=True)
        self._check(request, other if peer is None else peer, tensor)
        message = _Receive(self, tensor, request, peer, tag)
        if not now:
            return message
        message.wait()
        return message.source_rank()

    def _check(self, request: Request, peer: int, tensor: Any) -> None:
        if peer == self.links.rank:
            raise UnsupportedError("{peer} must be another rank for tensors on a device\nCopy the tensor instead.")
        self.check_form(tensor)
        self.links.settle_device(request.device_number)


class Message:
    """Of a *tensor*, of which *request* tells. See ``EngineWork``. Started, a thread finds the other rank; waited for, it is ordered on the
    caller's current stream.
    """

    def __init__(self, messages: Messages[Any], tensor: Any, request: Request, peer: int | None, tag: int) -> None:
        self._messages, self.tensor, self.request, self._peer, self._tag = messages, tensor, request, peer, tag
        self._links = messages.links
        self.begin = self._links.event_before(request)
        self._header: Any = None  # the work that carries it
        self.size = 0  # bytes, as its sender says
        self._is_over = threading.Event()
        self._end: Any = None
        self._source = -1
        self._error: BaseException | None = None

    def _begin_header(self) -> Any:
        """Have the header go to the other rank, or come from there, and return the work that does it."""
        raise NotImplementedError

    def _put(self) -> Any:
        """Put the message on the stream of its direction when the header is there, and return its end."""
        raise NotImplementedError

    def start(self) -> None:
        if self._header is None:
            self._header = self._begin_header()  # here: in the order in which the program begins messages
            begin_thread("shim device message", self._run)

    def _run(self) -> None:
        try:
            self._header.wait()
            self._end = self._put()
        except BaseException as error:
            self._error = error.with_traceback(None)  # which would keep the tensor
        self._is_over.set()

    def wait(self, timeout: float = -1.0) -> None:
        if self._header is None and timeout < 0:
            self._header = self._begin_header()
            self._run()
        self.start()
        if not self._is_over.wait(None if timeout < 0 else timeout):
            late = CollectiveTimeoutError(f"the other rank has not come to the message within {timeout:g} s")
            late.ranks = ()
            raise late
        if self._error is not None:
            raise self._error
        self._links.order_after(self._end, self.request)

    def hold_memory(self) -> None:
        """Do nothing: it holds its tensor."""

    def read_before_others_write(self, others: Any) -> None:
        """Do nothing: messages of one direction follow each other."""

    def is_completed(self) -> bool:
        end = self._end
        return self._is_over.is_set() and (end is None or end.is_cut_off or self._links.is_reached(end))

    def exception(self) -> ShimError | None:
        return self._error if isinstance(self._error, ShimError) else self._links.what_ended(self._end)

    def source_rank(self) -> int:
        return self._source

    def _put_in_turn(self, key: tuple[int, int], number: int, is_wanted: bool = True) -> Any:
        messages, links = self._messages, self._links
        with messages.directions[key].in_turn(number, links):
            try:
                return messages.put(key, self, is_wanted)
            except StateError:  # the group was closed meanwhile, of which the other rank hears
                raise
            except BaseException as error:  # the next message of the direction would take this one's place on one rank
                why = f"a message on a device has failed: {str(error) or type(error).__name__}"
                links.give_up(EngineError(why))
                raise


class _Send(Message):
    def _begin_header(self) -> Any:
        assert self._peer is not None
        ((_, size),) = self.request.input_places
        self._key = (self._links.rank, self._peer)
        direction = self._messages.directions[self._key]
        with direction.beginning:
            self._number = direction.begun
            self.size = size
            header = _HEADER.pack(self._number, size, self.request.dtype.encode())
            room = Elements(memoryview(bytearray(header)), DEVICE_MESSAGE)
            work: Any = self._messages.under.send(room, self._peer, self._tag, False)
            work.start()
            direction.begun += 1
        return work

    def _put(self) -> Any:
        return self._put_in_turn(self._key, self._number)


class _Receive(Message):
    def _begin_header(self) -> Any:
        self._room = bytearray(_HEADER.size)
        room = Elements(memoryview(self._room), DEVICE_MESSAGE)
        work: Any = self._messages.under.receive(room, self._peer, self._tag, False)
        work.start()
        return work

    def _put(self) -> Any:
        ((_, room),) = self.request.output_places
        self._source = self._header.source_rank()
        number, self.size, dtype = _HEADER.unpack(self._room)
        named = dtype.rstrip(b"\0").decode()
        fits = (self.size, named) == (room, self.request.dtype)
        # What does not fit is received all the same, so that the sender, who has sent it, does not wait for ever.
        end = self._put_in_turn((self._source, self._links.rank), number, fits)
        if not fits:
            raise MismatchError(
                f"{{tensor}} must be as what rank {self._source} sent, {self.size} bytes of {named}, got {room} bytes of {self.request.dtype}"
            )
        return end
