"""What an engine over a network needs of the library that moves its bytes.

A link connects the members of one group. The engine above it orders the calls, compares them and tells what went wrong;
a link moves bytes and knows nothing of tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from shim.core.reduce_ops import ReduceOp

HEADER_BYTES = 1024  # of every header; small messages travel in one


class LinkError(Exception):
    """The library reports a failure. The engine finds out whether a rank died and raises its own error."""


class Pending(Protocol):
    """A transfer under way. Its memory must stay until it has ended."""

    def wait(self, seconds: float) -> bool:
        """Wait up to *seconds*; return whether it has ended. Raise LinkError if it failed.

        0 only looks. Ctrl-C interrupts a wait.
        """


class FailedTransfer:
    """A transfer that could not be begun, because of *error*: who waits for it is told."""

    def __init__(self, error: Exception) -> None:
        self._error = str(error).partition("\n")[0]

    def wait(self, seconds: float) -> bool:
        raise LinkError(self._error)


class Link(ABC):
    """The connections between the members of a group; ranks are group ranks.

    Every buffer is a one-dimensional contiguous ``memoryview`` of bytes. Collectives are called in the same order with
    fitting sizes on all ranks; messages may go on at the same time, from other threads. Nothing here waits, or raises
    LinkError: what is returned does, and the caller waits for it before it begins the next collective. Only after an
    ``all_to_all`` may it begin another one at once.
    """

    name: ClassVar[str]  # of the library, as explain() shows it
    needs_progress: ClassVar[bool] = False  # whether headers come only while somebody calls ``progress``
    rank: int
    size: int

    @abstractmethod
    def all_gather(self, outputs: memoryview, mine: memoryview) -> Pending:
        """Put every rank's *mine*, all of one size, into *outputs*, one after the other."""

    @abstractmethod
    def broadcast(self, data: memoryview, root: int) -> Pending:
        """Copy the root's *data* to all."""

    @abstractmethod
    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        """Send part *i* of *inputs* to rank *i*; parts may have any sizes, also 0."""

    @abstractmethod
    def reduces(self, dtype: str, op: ReduceOp) -> bool:
        """Tell whether ``all_reduce`` takes *dtype* (as ``Request.dtype``) and *op*.

        Only where the result is right: float16 and bfloat16 must be summed in float32 or wider, NaN must win in MIN and MAX,
        integers must wrap around.
        """

    @abstractmethod
    def all_reduce(self, data: memoryview, dtype: str, op: ReduceOp) -> Pending:
        """Combine all ranks' *data*, and put the result there, the same on all ranks bit by bit."""

    @abstractmethod
    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        """Send *data* to *peer*, which receives as many bytes under the same *number* (0 to 2**20 + 1)."""

    @abstractmethod
    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        """Receive what *peer* sends under *number*, exactly as many bytes."""

    @abstractmethod
    def send_header(self, header: bytes, peer: int) -> Pending:
        """Send *peer* HEADER_BYTES bytes, in order, which it takes without being asked. *header* is copied."""

    @abstractmethod
    def take_headers(self, taker: Callable[[int, bytes], None]) -> None:
        """Have *taker* called with the sender and the bytes of each header that comes, those that came before too.

        It is called by a thread of the link, or by whoever calls ``progress``; never by two at a time for one peer.
        """

    def progress(self) -> None:  # noqa: B027  # most have threads of their own
        """Take what has come. A rank that waits for a message calls this again and again."""

    @abstractmethod
    def close(self, is_clean: bool) -> None:
        """Release the connections. If not *is_clean*, transfers may be under way that never end: this must not wait for them."""

    def finish(self, seconds: float) -> None:  # noqa: B027  # most have nothing to wait for
        """Wait up to *seconds* for ranks that need this one to close in good order; the control connections close next."""
