"""The engine of a rehearsal (``SHIM_REHEARSE``): the world's other ranks are not there, and every call is answered at once.

The answer is what the other ranks have passed, where that was recorded before. Otherwise it is what there would be if every rank had passed
what this one did: a sum is so many times the input, a gather is copies; and what nobody here can know, as a message, is zeros.
``shim rehearse`` compares afterwards what all ranks would have called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from shim._native import Request, check_call
from shim.core.engines.base import Engine, Tensor
from shim.core.engines.place import REHEARSAL, Place
from shim.core.engines.rehearsal import known_values
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors.hollow import is_hollow, take_hollow_tensors
from shim.errors import ArgumentError, ShimError, StateError

if TYPE_CHECKING:
    from shim._native import CollectiveName

_AS_OFTEN_AS_RANKS = (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.BXOR, ReduceOp.PREMUL_SUM)


class RehearsalEngine(Engine):
    """Answers the calls of one rank of the group at *place*."""

    name = REHEARSAL
    answered: ClassVar[list[Callable[[Any], object]]] = []  # are told which tensors have got what is made up

    def __init__(self, place: Place) -> None:
        self.rank, self.size = place.rank, len(place.ranks)
        self._why_unusable = ""
        self._key = known_values.new_group_key(place.name, place.ranks)
        self._number = 0  # of collectives that move data
        self._messages: Counter[tuple[Any, ...]] = Counter()  # that were received
        take_hollow_tensors()

    def arrive(self, request: Request, move: Callable[[Request], object], now: bool = False) -> Any:
        return self._arrived(_Answered(request, move), now)

    def _arrived(self, work: _Answered, now: bool) -> Any:
        request = work.request
        assert request is not None
        from_root = request.collective in ("broadcast", "scatter")
        work.key, work.own = (self._key, self._number), self.rank
        work.senders = (request.root,) if from_root else range(self.size)
        self._number += request.collective != "barrier"
        return self._answer(work, now)

    def _answer(self, work: _Answered, now: bool) -> Any:
        self._check_usable()
        if not now:
            return work
        work.wait()
        return None if work.source < 0 else work.source

    def _carry_out(self, collective: CollectiveName, move: Callable[[Request], object], now: bool, **call: Any) -> Any:
        request = check_call(collective, self.rank, self.size, **call)
        is_told = collective == "broadcast" and self.rank != request.root
        return self._arrived(_Answered(request, move, call["inputs"] if is_told else call.get("outputs")), now)

    def barrier(self, now: bool = False, before: str = "") -> Any:
        del before  # what the ranks wait for may be told at any length here
        return super().barrier(now)

    def send(self, tensor: Tensor, peer: int, tag: int, now: bool = False) -> Any:
        del tag
        _check_peer(peer, self.size)
        return self._answer(_Answered(check_call("broadcast", 0, 2, inputs=tensor, root=0), _nothing), now)

    def receive(self, tensor: Tensor, peer: int | None, tag: int, now: bool = False) -> Any:
        """See ``Engine``. A message that nothing is known of is zeros, and where *peer* is any rank, it is of the next one."""
        source = self._sender_to(tag) if peer is None else peer
        _check_peer(source, self.size)
        request = check_call("broadcast", 1, 2, inputs=tensor, root=0)
        work = _Answered(request, _zeros, tensor, source)
        work.key, work.senders = self._message(source, tag), (source,)
        self._messages[source, tag] += 1
        return self._answer(work, now)

    def _message(self, source: int, tag: int) -> known_values.Key:
        return self._key, source, self.rank, tag, self._messages[source, tag]

    def _sender_to(self, tag: int) -> int:
        """Return who sends what this rank receives from anyone."""
        others = [(self.rank + 1 + place) % self.size for place in range(self.size - 1)] or [self.rank]
        return next((one for one in others if known_values.is_known(self._message(one, tag))), others[0])

    def move_broadcast(self, request: Request) -> None:
        """What the root has is what this rank has."""

    def move_all_reduce(self, request: Request) -> None:
        self._combine(request, request.inputs[0], request.outputs[0])

    def move_reduce(self, request: Request) -> None:
        if self.rank == request.root:
            self._combine(request, request.inputs[0], request.outputs[0])

    def move_all_gather(self, request: Request) -> None:
        for output in request.outputs:
            _fill(output, request.inputs[0])

    def move_gather(self, request: Request) -> None:
        if self.rank == request.root:
            self.move_all_gather(request)

    def move_scatter(self, request: Request) -> None:
        if self.rank == request.root:
            _fill(request.outputs[0], request.inputs[self.rank])
        else:
            _zeros(request)

    def move_reduce_scatter(self, request: Request) -> None:
        self._combine(request, request.inputs[self.rank], request.outputs[0])

    def move_all_to_all(self, request: Request) -> None:
        mine = request.inputs[self.rank]
        for output in request.outputs:
            _fill(output, mine)

    def move_barrier(self, request: Request) -> None:
        """Nobody is waited for."""

    def _combine(self, request: Request, mine: memoryview, result: memoryview) -> None:
        """Put into *result* what *mine*, of every rank, comes to."""
        op, times = ReduceOp(request.op), self.size
        total: memoryview | None = None
        power = memoryview(bytearray(mine))
        if op == ReduceOp.PREMUL_SUM:
            request.combine(power, [power], [request.factor])
        while op in _AS_OFTEN_AS_RANKS and times:  # by doubling
            if times & 1 and total is None:
                total = memoryview(bytearray(power))
            elif times & 1 and total is not None:
                request.combine(total, [total, power], [1.0, 1.0])
            times >>= 1
            if times:
                request.combine(power, [power, power], [1.0, 1.0])
        result[:] = power if total is None else total

    def refuse(self, reason: str) -> None:
        """Nobody hears of *reason*."""

    def give_up(self, why: str) -> None:
        self._why_unusable = self._why_unusable or f"it was given up: {why}"

    def is_gone(self, rank: int) -> bool:
        return False

    def has_left(self, rank: int) -> bool:
        return False

    def ending_of(self, rank: int) -> str:
        return ""

    def has_ended(self, rank: int) -> bool:
        return False

    def is_usable(self) -> bool:
        return not self._why_unusable

    def set_timeout(self, seconds: float) -> None:
        """Nobody is waited for."""

    def close(self, why: str = "") -> None:
        self._why_unusable = "it has been closed"

    def _check_usable(self) -> None:
        if self._why_unusable:
            raise StateError(f"the group can no longer be used: {self._why_unusable}")


class _Answered:
    """A call whose answer comes when it is started or waited for, and is *written* to these tensors."""

    def __init__(
        self, request: Request, move: Callable[[Request], object], written: Any = None, source: int = -1
    ) -> None:
        self.request: Request | None = request
        self.key: known_values.Key = ()
        self.senders: Sequence[int] = ()
        self.own = -1  # among the senders
        self._move, self._written = move, written
        self.source = source

    def start(self) -> None:
        self.wait()

    def wait(self, timeout: float = -1.0) -> None:
        del timeout  # it is there
        request, self.request = self.request, None
        if request is None or any(is_hollow(view.address) for view in request.views):
            return
        request.load()
        is_known = bool(request.outputs) and known_values.answer(request, self.key, self.senders, self.own)
        if not is_known:
            self._move(request)
        request.store()
        if request.size > 1 and self._written is not None and not is_known:
            for told in RehearsalEngine.answered:
                told(self._written)

    def hold_memory(self) -> None:
        """The request holds it."""

    def read_before_others_write(self, others: list[Any]) -> None:
        """What a message brings is zeros, whoever writes when."""

    def is_completed(self) -> bool:
        return self.request is None

    def exception(self) -> ShimError | None:
        return None

    def source_rank(self) -> int:
        return self.source


def _check_peer(peer: int, size: int) -> None:
    if not 0 <= peer < size:
        raise ArgumentError(f"{{peer}} must be in 0..{size - 1}, got {peer}")


def _fill(output: memoryview, mine: memoryview) -> None:
    """Copy as much of *mine* into *output* as fits there, and zeros behind it."""
    count = min(len(output), len(mine))
    output[:count] = mine[:count]
    output[count:] = bytes(len(output) - count)


def _zeros(request: Request) -> None:
    for output in request.outputs:
        output[:] = bytes(len(output))


def _nothing(request: Request) -> None:
    """A message that is sent goes nowhere."""
