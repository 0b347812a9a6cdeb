"""A collective with its gradient, for MindSpore to record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shim.core.work import Work
from shim.frontends.mindspore._handles import CommHandle, handle_of

Backward = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass
class RecordedCall:
    """A prepared collective, its tensors, and its gradient, for MindSpore to record."""

    work: Work
    async_op: bool
    outputs: tuple[Any, ...]
    inputs: tuple[Any, ...]
    backward: Backward
    overwrites: bool  # the outputs were there before
    handle: CommHandle | None = None

    def begin(self) -> None:
        """Carry the collective out, or start it and keep its handle."""
        self.handle = handle_of(self.work, self.async_op)
