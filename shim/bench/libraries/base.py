"""What the benchmark asks of a library: to make a batch of calls of a case, with tensors of its own kind. One of collectives has a method for each."""

from __future__ import annotations

import ctypes
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shim.bench.cases import IN_PLACE, Case
from shim.bench.libraries.patterns import ARRAY_DTYPES, Array, fill, input_of, mismatch

Call = Callable[[], object]


class CannotError(Exception):
    """The library has no way to do what was asked; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where a rank process is: its rank among ``ranks``, and what the ranks of its contender share.

    ``folder`` is empty at first, ``segment`` a file to be mapped, and ``endpoints`` are addresses, one per rank, that are free;
    ``processors`` are those the machine lets us use.
    """

    rank: int
    ranks: int
    folder: str
    processors: int
    segment: str
    endpoints: tuple[str, ...]


class Batch(ABC):
    """Calls of one case that are made one after the other and timed together, each with tensors of its own.

    Where ``ways`` is more than 1, they can be made in so many ways, of which the fastest counts.
    """

    ways = 1

    @abstractmethod
    def rewrite(self) -> None:
        """Write every input anew, as the program would that has computed it."""

    @abstractmethod
    def run(self, way: int = 0) -> float:
        """Make the calls, in the same *way* and at the same time as the other ranks, and return the seconds of one."""

    @abstractmethod
    def mismatch(self) -> str | None:
        """Return what is wrong with the outputs of a run, or None."""

    def close(self) -> None:  # noqa: B027  # most have nothing to give back
        """Give back memory that would stay."""


@dataclass(frozen=True)
class OverlapParts:
    """Communication and arithmetic of which one may run behind the other."""

    start: Callable[[], Call]  # begins the communication and returns the call that waits for its end
    product: Call


class Library(ABC):
    """One library in one rank process."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of what is measured, by name."""

    @abstractmethod
    def batch(self, case: Case, calls: int) -> Batch:
        """Make ready for so many *calls* of *case*. Raises CannotError."""

    def overlap(self, case: Case, side: int) -> OverlapParts:
        """Make ready for an asynchronous all_reduce of *case* and a product of two matrices of *side* rows. Raises CannotError."""
        raise CannotError("has nothing that runs behind the caller's back")

    @abstractmethod
    def close(self) -> None: ...


_UNWRITTEN = 0x77  # every byte of an output before it is checked


class Tensors(NamedTuple):
    """The tensors of one call. Where a collective works in place, input and output are the same one."""

    input: Any
    output: Any
    parts: list[int]  # elements of each rank's input


class CollectiveLibrary(Library):
    """A method per collective returns the call that carries it out and waits for its end."""

    @abstractmethod
    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        """Return a tensor of *count* elements and an array over the same memory, in which bfloat16 is uint16."""

    @abstractmethod
    def all_reduce(self, tensors: Tensors) -> Call: ...

    @abstractmethod
    def all_gather(self, tensors: Tensors) -> Call: ...

    @abstractmethod
    def reduce_scatter(self, tensors: Tensors) -> Call: ...

    @abstractmethod
    def all_to_all(self, tensors: Tensors) -> Call: ...

    @abstractmethod
    def broadcast(self, tensors: Tensors) -> Call: ...

    @abstractmethod
    def barrier(self, tensors: Tensors) -> Call: ...

    @abstractmethod
    def send(self, tensor: Any, peer: int) -> Call: ...

    @abstractmethod
    def receive(self, tensor: Any, peer: int) -> Call: ...

    @abstractmethod
    def all_gather_unequal(self, tensors: Tensors) -> Call: ...

    def send_receive(self, tensors: Tensors) -> Call:
        """There and back between ranks 0 and 1, 2 and 3, and so on; the last of an odd number does nothing."""
        rank, peer = self.place.rank, self.place.rank ^ 1
        if peer >= self.place.ranks:
            return _nothing
        send, receive = self.send(tensors.input, peer), self.receive(tensors.output, peer)
        first, second = (send, receive) if rank < peer else (receive, send)

        def there_and_back() -> None:
            first()
            second()

        return there_and_back

    def start_all_reduce(self, tensor: Any) -> Callable[[], Call]:
        """Return what begins an all_reduce in place and returns the call that waits for it."""
        raise CannotError("has no all_reduce that runs behind the caller's back")

    def product(self, side: int) -> Call:
        """Return a product of two square float32 matrices, in the library's own framework."""
        left, right = np.ones((side, side), np.float32), np.ones((side, side), np.float32)
        result = np.empty_like(left)
        return lambda: np.matmul(left, right, out=result)

    def batch(self, case: Case, calls: int) -> Batch:
        return _Calls(self, case, calls)

    def overlap(self, case: Case, side: int) -> OverlapParts:
        tensor, array = self.make(case.count, case.dtype)
        array[:] = 0  # whose sums stay what they are, however often they are taken
        return OverlapParts(self.start_all_reduce(tensor), self.product(side))


class _Calls(Batch):
    def __init__(self, library: CollectiveLibrary, case: Case, calls: int) -> None:
        self._case, self._rank = case, library.place.rank
        self._halved = case.collective == "send_receive"
        self._period = input_of(self._rank, case.dtype)
        self._inputs: list[Array] = []
        self._outputs: list[Array] = []
        self._calls: list[Call] = []
        self._kept: list[Tensors] = []  # the arrays point into them, and not every call keeps its own
        for _ in range(calls):
            output, written = library.make(case.output_count(self._rank), case.dtype)
            input, read = output, written
            if case.collective not in IN_PLACE:
                input, read = library.make(case.parts[self._rank], case.dtype)
            self._kept.append(Tensors(input, output, case.parts))
            self._calls.append(getattr(library, case.collective)(self._kept[-1]))
            written.view(np.uint8)[:] = _UNWRITTEN
            self._inputs.append(read)
            self._outputs.append(written)

    def rewrite(self) -> None:
        for array in self._inputs:
            fill(array, self._period)

    def run(self, way: int = 0) -> float:
        calls = self._calls
        begin = time.perf_counter()
        for call in calls:
            call()
        seconds = (time.perf_counter() - begin) / len(calls)
        return seconds / 2 if self._halved else seconds

    def mismatch(self) -> str | None:
        if self._halved and self._rank ^ 1 >= self._case.ranks:
            return None
        found = (mismatch(self._case, self._rank, output) for output in self._outputs)
        return next((wrong for wrong in found if wrong), None)


def numpy_tensor(count: int, dtype: str, bfloat16: Callable[[int], tuple[Any, Array]]) -> tuple[Any, Array]:
    """Return what ``make`` does, as a numpy array; numpy has no bfloat16, which *bfloat16* makes, of *count* elements."""
    if dtype == "bfloat16":
        return bfloat16(count)
    array: Array = np.empty(count, dtype)
    return array, array


def array_at(address: int, count: int, dtype: str) -> Array:
    """Return an array over the memory at *address*, whose owner must outlive it."""
    held = np.dtype(ARRAY_DTYPES[dtype])
    if count == 0:
        return np.empty(0, held)
    memory = (ctypes.c_char * (count * held.itemsize)).from_address(address)
    return np.ndarray((count,), held, memoryview(memory))


def _nothing() -> None:
    pass
