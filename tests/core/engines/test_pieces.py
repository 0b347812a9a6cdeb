"""Much data between hosts in pieces: which step of which piece is under way when."""

from __future__ import annotations

from collections.abc import Iterator

from shim.core.engines.hierarchical.engine import carry_out, count_for
from shim.core.engines.network.link import Pending


class Step:
    """One that has ended."""

    def __init__(self, name: str) -> None:
        self.name = name

    def wait(self, seconds: float) -> bool:
        return True


def test_a_step_of_each_piece_is_under_way() -> None:
    events: list[str] = []

    def piece(name: str) -> Iterator[Step]:
        for number in range(3):
            events.append(f"{name}{number}")
            yield Step(f"{name}{number}")
        events.append(f"{name} ends")

    def wait_for(pending: Pending) -> None:
        assert isinstance(pending, Step)
        events.append(f"wait {pending.name}")

    carry_out(wait_for, [piece("a"), piece("b")])  # type: ignore[list-item]
    assert events == [
        *("a0", "wait a0", "a1", "b0"),
        *("wait a1", "a2", "wait b0", "b1"),
        *("wait a2", "a ends", "wait b1", "b2"),
        *("wait b2", "b ends"),
    ]


def test_small_data_is_one_piece_and_large_data_a_few() -> None:
    assert [count_for(size) for size in (0, 1, 31 << 20, 32 << 20, 1 << 30)] == [1, 1, 1, 2, 8]
