"""Changes of a text at given places, which leave all else of it byte for byte as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Edits:
    """Replacements and insertions in *text*, which is UTF-8. Offsets count bytes of the text before all of them."""

    text: bytes
    _edits: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    _removed: list[tuple[int, int]] = field(default_factory=list)

    def replace(self, start: int, end: int, new: str) -> None:
        """Replace the bytes from *start* to *end*. No other replacement may touch them."""
        self._edits.append((start, end, 0, new.encode()))

    def remove(self, start: int, end: int) -> None:
        """Remove the bytes from *start* to *end*, with what is changed in them."""
        self._removed.append((start, end))

    def insert(self, at: int, new: str) -> None:
        """Insert *new* at *at*. Of several insertions at one place, the first made comes first."""
        self.replace(at, at, new)

    def insert_after(self, at: int, new: str) -> None:
        """Insert *new* at *at*, where something ends. Of several at one place, the last made comes first, as brackets close."""
        self._edits.append((at, at, -1 - len(self._edits), new.encode()))

    def mark(self) -> tuple[int, int]:
        """Return how many changes there are, for ``undo``."""
        return len(self._edits), len(self._removed)

    def undo(self, mark: tuple[int, int]) -> None:
        """Take back the changes made since *mark*."""
        del self._edits[mark[0] :]
        del self._removed[mark[1] :]

    def fit_quotes(self, strings: Sequence[tuple[int, int, str]]) -> None:
        """Write new text that stands within one of *strings*, places and quotes of formatted ones, without that quote: before Python 3.12 it would end there."""
        for number, (start, end, order, new) in enumerate(self._edits):
            around = {quote for first, last, quote in strings if first < start and end < last}
            for quote, other in (('"', "'"), ("'", '"')):
                if around == {quote}:
                    self._edits[number] = start, end, order, new.replace(quote.encode(), other.encode())

    def keep(self, start: int, end: int) -> None:
        """Take back what changes the bytes from *start* to *end*; what is inserted before them stays."""
        self._edits = [each for each in self._edits if each[1] <= start or each[0] > end]
        self._removed = [each for each in self._removed if each[1] <= start or each[0] >= end]

    def replaces(self, start: int, end: int) -> bool:
        """Tell whether nothing stays of the bytes from *start* to *end*: they are part of what is replaced or removed."""
        gone = [*((first, last) for first, last, _, _ in self._edits), *self._removed]
        return any(first <= start and end <= last and first < last for first, last in gone)

    def __len__(self) -> int:
        return len(self._edits) + len(self._removed)

    def applied(self) -> bytes:
        """Return the text with all of them made. Raises ValueError for two replacements that overlap."""
        parts, done = [], 0
        for start, end, _, new in sorted(
            [*self._kept(), *((*each, 1, b"") for each in self._removed)], key=lambda edit: edit[:3]
        ):
            if start < done:
                raise ValueError(f"two edits overlap at byte {start}: {new!r}")
            parts += [self.text[done:start], new]
            done = end
        return b"".join([*parts, self.text[done:]])

    def _kept(self) -> list[tuple[int, int, int, bytes]]:
        """The edits that are not in a place that is removed."""
        return [
            edit for edit in self._edits if not any(start < edit[1] and edit[0] < end for start, end in self._removed)
        ]
