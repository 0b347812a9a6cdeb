"""What every engine over a network does: order and agreement by the native group, data and messages by a link."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from shim._native import CarriedGroup, dtype_bytes
from shim.core.engines.base import Engine, Request, Tensor
from shim.core.engines.network import moves
from shim.core.engines.network.carrier import Carrier, Gather
from shim.core.engines.network.link import Link, LinkError, Pending
from shim.core.engines.network.messages import Messages, Mover
from shim.errors import CollectiveTimeoutError, EngineError, StateError

if TYPE_CHECKING:
    from shim.core.engines.place import Place
    from shim.core.work import EngineWork

_SLICE = 0.05  # seconds between two looks at the other ranks
_ON_ITS_WAY = 5.0  # seconds for what a rank has sent before it left
_UNTIL_WORD_OF_LOSS = 5.0  # seconds until a link's failure is its own, and not the sign of a lost rank
_FOR_NEIGHBOURS = 0.3  # seconds
_FOR_LAST_MESSAGES = 2.0  # seconds that leaving waits for small messages to go


class NetworkEngine(Engine):
    """Carries out the collectives of the group at *place* over *link*; *gather* exchanges the ranks' arrivals.

    The native group keeps this rank's copy of what all ranks say. It orders the calls, compares them, waits, and tells who is
    missing, as in shared memory. Arrivals of a call carry up to 40 bytes of data; what is larger goes over the link then.
    """

    link: Link
    moves: ClassVar[ModuleType] = moves

    def __init__(self, place: Place, link: Link, gather: Gather | None = None) -> None:
        assert place.control is not None
        assert place.choice is not None
        self._process = os.getpid()
        self.seal_key = place.control.seal_key
        self.rank, self.size, self.link = place.rank, len(place.ranks), link
        self.control, self._owns_control = place.control, place.owns_control
        self._carrier = Carrier(place.control, place, gather or gather_over(link))
        engine = (str(place.choice.name), place.choice.reason)
        try:
            self._group = CarriedGroup(
                place.key,
                place.name,
                list(place.ranks),
                place.rank,
                place.timeout,
                engine=engine,
                carrier=self._carrier,
                pids=self._carrier.pids_here(),
            )
        except BaseException:
            link.close(False)
            raise
        self._carrier.serve(self._group)
        self._messages = self._carrier.messages = Messages(link, partial(_label, place.ranks), dtype_bytes)

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """See ``Engine``. Small data is moved by the arrivals themselves, without *move*."""
        return self._group.arrive(request, partial(self._moved, move), now)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        """See ``Engine``."""
        sent = self._group.transfer(tensor, True, peer, tag, Mover(self._messages, True, peer, tag), now)
        return None if isinstance(sent, int) else sent

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        """See ``Engine``."""
        return self._group.transfer(tensor, False, peer, tag, Mover(self._messages, False, peer, tag), now)

    def refuse(self, reason: str) -> None:
        """See ``Engine``."""
        self._group.refuse(reason)

    def give_up(self, why: str) -> None:
        """See ``Engine``."""
        self._group.give_up(why)

    def is_gone(self, rank: int) -> bool:
        """See ``Engine``."""
        return self._group.is_gone(rank)

    def has_left(self, rank: int) -> bool:
        """See ``Engine``."""
        return self._group.has_left(rank)

    def ending_of(self, rank: int) -> str:
        """See ``Engine``."""
        return self._group.ending_of(rank)

    def has_ended(self, rank: int) -> bool:
        """See ``Engine``."""
        return self._group.has_ended(rank)

    def is_usable(self) -> bool:
        """See ``Engine``."""
        return self._group.is_usable()

    def set_timeout(self, seconds: float) -> None:
        """See ``Engine``."""
        self._group.set_timeout(seconds)

    def figures(self) -> str:
        """See ``Engine``."""
        return f"over {self.link.name}; what has at most 40 bytes on a rank goes with the agreement"

    def close(self, why: str = "") -> None:
        """See ``Engine``."""
        if os.getpid() != self._process:
            return  # it is the parent's
        is_clean = self._group.is_usable()
        deadline = time.monotonic() + _FOR_LAST_MESSAGES
        while is_clean and self._messages.has_unsent() and time.monotonic() < deadline:
            time.sleep(0.001)
        is_clean = is_clean and not self._messages.has_unsent()
        self._messages.close()
        self._group.leave(why)
        self._carrier.close()
        self._group.close(why)
        self.link.close(is_clean and not self._carrier.is_exchanging())
        if self._owns_control and self.control is not None:
            self.link.finish(_FOR_NEIGHBOURS)
            self.control.close(why)

    def wait_for(self, pending: Pending) -> None:
        """Wait for a transfer of the collective that all ranks are in. Raises PeerLostError, CollectiveTimeoutError and EngineError."""
        deadline = time.monotonic() + self._group.timeout()
        left_at: float | None = None
        try:
            while not pending.wait(_SLICE):
                now = time.monotonic()
                if now >= deadline:
                    raise self._late()
                left_at = left_at or (now if self._carrier.left else None)
                self._check_others(allows_left=left_at is None or now < left_at + _ON_ITS_WAY)
        except LinkError as error:
            raise self._failure(error) from None

    def _moved(self, move: Callable[[Request], object], request: Request) -> None:
        self._carrier.wait_for_exchange(partial(self._check_others, True))  # who left has sent its part
        move(request)

    def _check_others(self, allows_left: bool = False) -> None:
        """Raise what it is where a rank is lost. One that left in good order may have sent what is still to come."""
        if self._carrier.is_closed:
            raise StateError("the group has been closed meanwhile")
        for rank in range(self.size):
            if rank != self.rank and self._group.is_gone(rank) and not (allows_left and rank in self._carrier.left):
                self._group.check_rank_present(rank)

    def _failure(self, error: LinkError) -> EngineError:
        until = time.monotonic() + _UNTIL_WORD_OF_LOSS
        while time.monotonic() < until:
            self._check_others()
            time.sleep(0.002)
        return EngineError(f"{self.link.name} failed: {error}\nThe group can no longer be used.")

    def _late(self) -> CollectiveTimeoutError:
        late = CollectiveTimeoutError(
            f"the data of operation {self._group.sequence()} of the group has not come over {self.link.name} within "
            f"{self._group.timeout():g} s: all ranks have arrived\nThe group can no longer be used."
        )
        late.ranks = ()
        return late


def _label(ranks: Sequence[int], rank: int) -> str:
    """Name group rank *rank* of a group of the world ranks *ranks*, as errors do."""
    there = ranks[rank]
    return f"rank {rank}" if there == rank else f"rank {rank} (rank {there} of the world)"


def gather_over(link: Link) -> Gather:
    """Return what gathers by the link's all_gather."""

    def gather(mine: bytes) -> Generator[Pending, None, list[bytes]]:
        width = len(mine)
        room = bytearray(width * link.size)
        yield link.all_gather(memoryview(room), memoryview(bytearray(mine)))
        return [bytes(room[start : start + width]) for start in range(0, len(room), width)]

    return gather
