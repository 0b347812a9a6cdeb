"""What the benchmark asks of a library: to make a batch of calls of a case, with tensors of its own kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from shim.bench.planning.cases import Case

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
