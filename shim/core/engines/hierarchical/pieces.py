"""Much data in pieces, so that one is between hosts while another is within them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

from shim.core.engines.network.link import Pending

_LEAST = 2 << 20  # bytes of a piece, whose steps take a millisecond even for nothing
_MOST = 8


def count_for(size: int) -> int:
    """Return in how many pieces *size* bytes go."""
    return min(_MOST, max(1, size // _LEAST))


def carry_out(wait_for: Callable[[Pending], None], pieces: Iterable[Generator[Pending, None, None]]) -> None:
    """Carry out the steps of all *pieces*, each step once *wait_for* has returned from the one before it.

    The second step of a piece is under way with the first of the next one, and so on: every rank begins them in the same order.
    """
    waiting = list(pieces)
    under_way: list[tuple[Generator[Pending, None, None], Pending]] = []
    while waiting or under_way:
        begun = []
        for steps, pending in under_way:
            wait_for(pending)
            begun += [(steps, following) for following in [next(steps, None)] if following is not None]
        if waiting:
            steps = waiting.pop(0)
            begun += [(steps, next(steps))]
        under_way = begun


class _All:
    def __init__(self, transfers: Sequence[Pending]) -> None:
        self._transfers = transfers

    def wait(self, seconds: float) -> bool:
        """See ``Pending``."""
        return all(transfer.wait(seconds) for transfer in self._transfers)


def all_of(transfers: Sequence[Pending]) -> Pending:
    """Return what ends when all *transfers* have."""
    return _All(transfers)
