"""What a port reports of a place in the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# left: the code is as it was, and does not run on the target before somebody changes it.
# changed: the code is ported, and something about it differs that the author has to know.
Kind = Literal["left", "changed"]


@dataclass(frozen=True, order=True)
class Entry:
    """One line of the report. ``line`` and ``column`` count from 1, in the source before the port; ``rule`` is a stable name of the reason."""

    line: int
    column: int
    kind: Kind
    rule: str
    why: str
    advice: str
