"""What an example is: code in steps, and what its document shows after some of them; and which examples a name means."""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

EVERY_RANK = -1


@dataclass(frozen=True)
class Wanted:
    """What the document shows: text for each rank, or for ``EVERY_RANK``; ``line`` is where, counted from 1 in the text.

    ``of`` is None where the step is there to show something. For a comment beside other code it has names: the first of these that is no
    module has the value, if the step shows none itself. A ``bare`` comment does not say that it is about an output, and may be a remark.
    """

    text: Mapping[int, str]
    line: int
    of: tuple[str, ...] | None = None
    bare: bool = False

    @property
    def is_printed(self) -> bool:
        """Tell whether the text can only be what the step prints, or its value, and not that of a variable."""
        return not self.of and not self.bare

    def on(self, rank: int) -> str | None:
        """Return what *rank* is to see, None where the document says nothing of it."""
        return self.text.get(rank, self.text.get(EVERY_RANK))


@dataclass(frozen=True)
class Step:
    """One statement at the top of an example.

    ``section`` counts the parts that comments such as "Another example" begin. ``ranks`` are those that the document has carry the step out,
    None for all. ``raises`` says that the document has it raise, on some rank; ``errors`` what it raises on each, or on ``EVERY_RANK``: a
    class's name, or an empty text for any.
    """

    source: str
    line: int
    section: int
    wanted: Wanted | None = None
    ranks: frozenset[int] | None = None
    raises: bool = False
    errors: Mapping[int, str] = field(default_factory=dict)

    def error_on(self, rank: int) -> str | None:
        """Return the class of what *rank* is to raise, None where it is to raise nothing."""
        return self.errors.get(rank, self.errors.get(EVERY_RANK))


@dataclass(frozen=True)
class Example:
    """One example of the documentation of ``function``, the ``number``-th of it from 1.

    ``ranks`` is how many the document says, or needs; ``text`` is the example as it stands, ``place`` where. It ``is_case`` where it is a
    whole program, of which nothing is left to the reader, and what it shows holds on every rank. ``folder`` is where the file lies that it
    is of, whose modules it may import; it is empty where there is none. ``output`` is what the document shows of the whole: some rank prints
    each of its lines. ``unread`` has the lines of the comments that look like outputs and say nothing that is checked.
    """

    framework: str
    function: str
    number: int
    text: str
    place: str
    steps: tuple[Step, ...]
    ranks: int
    is_case: bool = False
    folder: str = ""
    output: str = ""
    unread: tuple[int, ...] = ()

    @property
    def claims(self) -> bool:
        """Tell whether the document says anything of the example that a run can find wrong, besides that it ends well."""
        told = any(step.wanted is not None or step.raises or step.errors for step in self.steps)
        return told or bool(self.output) or any(_asserts(step.source) for step in self.steps)

    @property
    def name(self) -> str:
        return self.function if self.number == 1 else f"{self.function}#{self.number}"

    @property
    def fingerprint(self) -> str:
        """A digest of the text, by which a record knows that it is about this text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def _asserts(source: str) -> bool:
    """Tell whether *source* checks something itself: by ``assert``, or a function that is called so."""
    if "assert" not in source:
        return False
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return False
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    return any(isinstance(node, ast.Assert) for node in nodes) or any("assert" in ast.unparse(call) for call in calls)


def is_chosen(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether one of *patterns* means the example called *name*; without patterns all are meant.

    A pattern is the example's name, the name of its function with or without the modules, or has ``*`` and ``?`` in it.
    """
    return not patterns or any(fnmatchcase(way, pattern) for pattern in patterns for way in _ways(name))


def _ways(name: str) -> tuple[str, str, str]:
    function = name.partition("#")[0].partition(":")[0]
    return name, function, function.rpartition(".")[2]


def unmatched(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return a line for every pattern that means none of *names*, with the nearest of them."""
    known = {way: _ways(name)[1] for name in names for way in reversed(_ways(name))}
    lines = []
    for pattern in patterns:
        if not any(fnmatchcase(way, pattern) for way in known):
            near = dict.fromkeys(known[way] for way in difflib.get_close_matches(pattern, known, n=3))
            lines.append(f"there is no example {pattern!r}" + (f"; is it {', '.join(near)}?" if near else ""))
    return lines
