"""What every engine over a network does: order and agreement by the native group, data and messages by a link.

To move data, every two ranks exchange what they have for each other. Reductions combine the elements of all ranks in the order of
ranks 0 to N-1, each rank a slice of them: the result is bit by bit that of one host's engine. Only all_reduce of more than
16 ranks leaves the order to the library, where that combines the dtype right.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from struct import pack, unpack
from typing import TYPE_CHECKING, cast

import numpy as np

from shim._native import dtype_bytes
from shim.core.engines.base import Engine, Request, Tensor
from shim.core.engines.layer import Layer
from shim.core.engines.network.carrier import Carrier
from shim.core.engines.network.layout import Layout
from shim.core.engines.network.lazy_link import LazyLink
from shim.core.engines.network.link import Link, LinkError, Pending
from shim.core.engines.network.meeting import met
from shim.core.engines.network.messages import Messages, Mover
from shim.core.reduce_ops import ReduceOp
from shim.errors import CollectiveTimeoutError, EngineError, MismatchError, StateError

if TYPE_CHECKING:
    from shim.core.engines.place import Place
    from shim.core.work import EngineWork

_SLICE = 0.05  # seconds between two looks at the other ranks
_ON_ITS_WAY = 5.0  # seconds for what a rank has sent before it left
_UNTIL_WORD_OF_LOSS = 5.0  # seconds until a link's failure is its own, and not the sign of a lost rank
_FOR_NEIGHBOURS = 0.3  # seconds
_FOR_CONNECTING = 60.0  # seconds
_FOR_LAST_MESSAGES = 2.0  # seconds that leaving waits for small messages to go
_NOTHING = memoryview(bytearray())
_MOST_KEPT = 32 << 20  # bytes for what comes to be combined, of which fresh memory would cost a tenth of the time
_MOST_BY_SLICES = 16  # ranks; of more, the library's own all_reduce takes fewer messages


class NetworkEngine(Layer):
    """Carries out the collectives of the group at *place* over the link that *connect* makes among the world ranks that it is
    given: all members, or, for messages alone, those that are left. In *layout*, each rank is a host of its own where none is given.

    The native group, *under*, exchanges what the ranks call, with small and middle data; it orders the calls, compares them, waits, and tells who is
    missing, as in shared memory. What is larger goes over the link then.
    """

    link: Link

    def __init__(
        self,
        place: Place,
        connect: Callable[[tuple[int, ...]], Link],
        layout: Layout | None = None,
    ) -> None:
        assert place.control is not None
        self._process = os.getpid()
        self.seal_key = place.control.seal_key
        self.control, self._owns_control = place.control, place.owns_control
        layout = layout or Layout.of(range(len(place.ranks)), place.rank)
        self._carrier = Carrier(place.control, place, layout.here)
        self._group, self._connected = met(place, layout, self._carrier, connect)
        self.link = self._connected
        self._kept = _NOTHING
        self._most_of_a_host = max(map(len, layout.members))
        super().__init__(cast(Engine, self._group), place.rank, len(place.ranks))  # it has an engine's methods
        self._carrier.serve(self._group)
        self._messages = self._carrier.messages = Messages(self.link, partial(_label, place.ranks), dtype_bytes)
        if isinstance(self.link, LazyLink):
            self.link.is_gone, self.link.tell_failure = self._group.is_gone, self._messages.lose_headers

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> EngineWork | None:
        """See ``Engine``. Small data is moved by the arrivals themselves, without *move*."""
        return self._group.arrive(request, partial(self._moved, move), now)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> EngineWork | None:
        sent = self._group.transfer(tensor, True, peer, tag, Mover(self._messages, True, peer, tag), now)
        return None if isinstance(sent, int) else sent

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> EngineWork | int:
        return self._group.transfer(tensor, False, peer, tag, Mover(self._messages, False, peer, tag), now)

    def figures(self) -> str:
        most = self._group.thresholds()["piece"] // 1024
        of_sums = most // self._most_of_a_host
        less = f", of a reduction up to {of_sums} KB" * (of_sums < most)
        return f"over {self.link.name}; up to {most} KB on a rank travel with the agreement{less}"

    def close(self, why: str = "") -> None:
        if os.getpid() != self._process:
            return  # it is the parent's
        is_clean = self._group.is_usable()
        deadline = time.monotonic() + self._group.timeout()
        while is_clean and self._messages.has_unsent() and time.monotonic() < deadline:
            if not (isinstance(self._connected, LazyLink) and self._connected.is_being_made):
                deadline = min(deadline, time.monotonic() + _FOR_LAST_MESSAGES)
            is_clean = self._group.is_usable()
            time.sleep(0.001)
        is_clean = is_clean and not self._messages.has_unsent()
        self._messages.close()
        self._group.leave(why)
        self._carrier.close()
        self._group.close(why)
        self._connected.close(is_clean)
        if self._owns_control and self.control is not None:
            self._connected.finish(_FOR_NEIGHBOURS)
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

    def move_broadcast(self, request: Request) -> None:
        """The library's own."""
        data = request.inputs[0] if self.rank == request.root else request.outputs[0]
        self.wait_for(self.link.broadcast(data, request.root))

    def move_all_reduce(self, request: Request) -> None:
        """Each rank combines its slice and gives it to all: 2*(N-1)/N*S bytes and 2*(N-1) messages on each rank."""
        mine, result = request.inputs[0], request.outputs[0]
        if self.size > _MOST_BY_SLICES and self.link.reduces(request.dtype, ReduceOp(request.op)):
            result[:] = mine
            self.wait_for(self.link.all_reduce(result, request.dtype, ReduceOp(request.op)))
            return
        own = slices(result, self.size, request.dtype)[self.rank]
        self._combine_slices(request, slices(mine, self.size, request.dtype), own)
        self._exchange(slices(result, self.size, request.dtype), [own] * self.size)

    def move_reduce(self, request: Request) -> None:
        """Each rank combines its slice and gives it to the root: at most 2*(N-1)/N*S bytes on each rank."""
        mine = slices(request.inputs[0], self.size, request.dtype)
        is_root = self.rank == request.root
        results = slices(request.outputs[0], self.size, request.dtype) if is_root else [_NOTHING] * self.size
        own = results[self.rank] if is_root else room(len(mine[self.rank]))
        self._combine_slices(request, mine, own)
        self._exchange(results, [own if rank == request.root else _NOTHING for rank in range(self.size)])

    def move_all_gather(self, request: Request) -> None:
        """Every rank sends its input to every other one."""
        self._exchange(request.outputs, request.inputs * self.size)

    def move_gather(self, request: Request) -> None:
        """Every rank sends its input to the root."""
        outputs = request.outputs if self.rank == request.root else [_NOTHING] * self.size
        mine = request.inputs[0]
        self._exchange(outputs, [mine if rank == request.root else _NOTHING for rank in range(self.size)])

    def move_scatter(self, request: Request) -> None:
        """The root sends each rank its part."""
        inputs = request.inputs if self.rank == request.root else [_NOTHING] * self.size
        output = request.outputs[0]
        self._exchange([output if rank == request.root else _NOTHING for rank in range(self.size)], inputs)

    def move_reduce_scatter(self, request: Request) -> None:
        """Every two ranks exchange their parts, of which each combines its own: (N-1)/N*S bytes on each rank."""
        self._combine_slices(request, request.inputs, request.outputs[0])

    def move_all_to_all(self, request: Request) -> None:
        """Every two ranks exchange their parts for each other."""
        self._exchange(request.outputs, request.inputs)

    def move_barrier(self, request: Request) -> None:
        """The agreement already waits for every rank."""

    def _combine_slices(self, request: Request, parts_of_mine: Sequence[memoryview], result: memoryview) -> None:
        """Give each rank its part of this one's, and put what they combine to for this rank into *result*."""
        parts = self.parts_to_combine(self.size, len(result))
        self._exchange(parts, parts_of_mine)
        request.combine(result, parts, self._factors(request))

    def parts_to_combine(self, count: int, size: int) -> list[memoryview]:
        """Return memory for *count* parts of *size* bytes, until they are combined: then the same serves for others."""
        memory = self._kept
        if len(memory) < count * size:
            memory = room(count * size)
            if len(memory) <= _MOST_KEPT:
                self._kept = memory
        return [memory[place * size : (place + 1) * size] for place in range(count)]

    def _factors(self, request: Request) -> list[float]:
        """Return the factors of all ranks, where the op has any."""
        if request.op != ReduceOp.PREMUL_SUM:
            return []
        all_factors = room(8 * self.size)
        self.wait_for(self.link.all_gather(all_factors, memoryview(bytearray(pack("d", request.factor)))))
        return list(unpack(f"{self.size}d", all_factors))

    def _exchange(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> None:
        self.wait_for(self.link.all_to_all(outputs, inputs))

    def _moved(self, move: Callable[[Request], object], request: Request) -> None:
        if isinstance(self.link, LazyLink):
            self._wait_until_made(self.link)
            assert self.link.link is not None
            self.link = self.link.link
        try:
            move(request)
        except (MismatchError, MemoryError):
            raise  # on all ranks
        except LinkError as error:
            self.give_up_moving(str(error))
            raise self._failure(error) from None
        except BaseException as error:
            self.give_up_moving(f"moving the group's data has failed: {error}")
            raise

    def _wait_until_made(self, link: LazyLink) -> None:
        """Wait for the library to be imported and to connect, for which nobody has to answer: for a while even where the timeout is short."""
        made, deadline = link.made(), time.monotonic() + max(self._group.timeout(), _FOR_CONNECTING)
        try:
            while not made.wait(_SLICE):
                self._check_others()
                if time.monotonic() > deadline:
                    raise self._late()
        except LinkError as error:
            raise self._failure(error) from None

    def give_up_moving(self, why: str) -> None:
        """Have no other rank wait any longer for this one's part in moving data, because of *why*."""

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


def room(size: int) -> memoryview:
    """Return memory for *size* bytes."""
    return np.empty(size, np.uint8).data  # which nobody has to clear


def slices(part: memoryview, count: int, dtype: str) -> list[memoryview]:
    """Return *part* in *count* pieces of whole elements."""
    width = dtype_bytes(dtype)
    elements = len(part) // width
    ends = [elements * (place + 1) // count * width for place in range(count)]
    return [part[start:end] for start, end in zip([0, *ends], ends, strict=False)]
