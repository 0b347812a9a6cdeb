"""Cases of a user's own: plain Python programs, which say in comments how many ranks run them and what these show.

    # ranks: 2, 4
    import torch
    import torch.distributed as dist

    dist.init_process_group()
    tensor = torch.ones(2) * dist.get_rank()
    dist.broadcast(tensor, 1)
    print(tensor)
    # shows: tensor([1., 1.])
    print(dist.get_rank() < 1)
    # shows on rank 0: True
    # shows on rank 1: False
    dist.broadcast(tensor, 9)  # raises ValueError

docs/conformance.md says what the comments mean. One that begins with something like a marker's word is taken for a mistake, not for a remark. The program runs as it is on the real framework too, with
``torchrun`` or the like.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shim.conformance.examples.example import EVERY_RANK, Example, Step, Wanted
from shim.conformance.kinds import KINDS

RANKS, SHOWS, RAISES = "ranks", "shows", "raises"
_FORMS = {
    RANKS: "# ranks: 2, 4",
    SHOWS: "# shows: TEXT, # shows on rank 0: TEXT or # shows on ranks 0, 1: TEXT",
    RAISES: "# raises, # raises ValueError, # raises on rank 0: ValueError or # raises on ranks 0, 1",
}
_NUMBERS = r"\d+(?:\s*,\s*\d+)*"
_ON = rf"(?:\s+on\s+ranks?\s+(?P<on>{_NUMBERS}))"
_PATTERNS = {
    RANKS: re.compile(rf"ranks:\s*(?P<text>{_NUMBERS})\s*$"),
    SHOWS: re.compile(rf"shows{_ON}?:\s?(?P<text>.*)$"),
    RAISES: re.compile(rf"raises(?:{_ON}(?:\s*:\s*(?P<of>\w+))?|(?:\s*:)?\s+(?P<text>\w+))?\s*$"),
}
# A word that is used as a marker is: "show: 1", "Shows on rank 0: 1", "raise ValueError"
_USED = re.compile(
    r"(?P<word>[A-Za-z]+)(?:\s*:|\s+on\s+ranks?\b|\s+\w*(?:Error|Exception)\s*$|(?<=[Rr]aise)\s*$|(?<=[Rr]aised)\s*$)"
)
_ALIKE = 0.75  # of 1: "show", "Shows", "raised" and "rank" are like a marker, "ranges" and "shape" are not


@dataclass(frozen=True)
class Marker:
    """A comment of ``kind`` about ``ranks``: what they show, the class of what they raise ("" for any), or how many they are."""

    kind: str
    ranks: tuple[int, ...]
    text: str


def marker_in(comment: str) -> Marker | None:
    """Return the marker that *comment* is, None for a remark. Raises ValueError for one that has not the form of its word."""
    text = comment.lstrip("#").strip()
    for kind, pattern in _PATTERNS.items():
        if found := pattern.match(text):
            of = found.groupdict()
            on = _numbers(of["on"]) if of.get("on") else (EVERY_RANK,)
            return Marker(kind, on, of.get("of") or of["text"] or "")
    _refuse_mistake(text)
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in *text*, which has commas between them."""
    return tuple(int(number) for number in text.split(","))


def _refuse_mistake(text: str) -> None:
    """Raise ValueError where *text* begins with a marker's word, or one like it that is used as a marker is."""
    first = text.split(maxsplit=1)[0] if text else ""
    if first in (SHOWS, RAISES):
        raise ValueError(f"{first} has the form {_FORMS[first]}")
    if used := _USED.match(text):
        word = used["word"]
        if word in _FORMS:
            raise ValueError(f"{word} has the form {_FORMS[word]}")
        for near in difflib.get_close_matches(word.lower(), _FORMS, n=1, cutoff=_ALIKE):
            raise ValueError(f"{word!r} is no marker; {near} has the form {_FORMS[near]}")


_BEGINS = re.compile(r"#+\s*[Rr]anks?\s*:")
_MORE = re.compile(r"#\s{4}(?P<text>.*)$")


class CaseError(ValueError):
    """A case that has not the form of one: ``problems`` are (line, what is wrong)."""

    def __init__(self, problems: Sequence[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {text}" for line, text in problems))
        self.problems = tuple(problems)


def is_case(text: str) -> bool:
    """Tell whether *text* is a case: one of the comments before its code says for how many ranks."""
    for line in text.splitlines():
        if _BEGINS.match(line):
            return True
        if line.strip() and not line.startswith("#"):
            break
    return False


def marks_of_a_case(text: str) -> Iterator[int]:
    """Give the lines of the Python file *text* that only a case has: those that say for how many ranks it is, or what it shows."""
    for line, comment in _comments(text):
        try:
            marker = marker_in(comment)
        except ValueError:
            continue  # a remark, as the file is no case
        if marker is not None and marker.kind in (RANKS, SHOWS):
            yield line


def examples_of_case(text: str, name: str, numbers: Sequence[int] = ()) -> list[Example]:
    """Return the case *text*, once for each number of ranks that it names. Raises CaseError.

    *numbers* has for each line of *text* the line of the file that it is, where it is not the same.
    """
    try:
        case = _Case(text, numbers)
    except CaseError as error:
        lines = [(_number(numbers, line), problem) for line, problem in error.problems]
        raise CaseError(lines) from None
    place = f"{name}, line {_number(numbers, case.stated_at)}"
    return [
        Example(case.framework, name, number, text, place, case.steps, ranks, is_case=True)
        for number, ranks in enumerate(case.ranks, start=1)
    ]


def _number(numbers: Sequence[int], line: int) -> int:
    return numbers[line - 1] if numbers else line


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


class _Case:
    """A case that is taken apart. Raises CaseError with all that is wrong."""

    def __init__(self, text: str, numbers: Sequence[int]) -> None:
        try:
            self.body = ast.parse(text).body
        except SyntaxError as error:
            raise CaseError([(error.lineno or 1, error.msg)]) from None
        self.problems: list[tuple[int, str]] = []
        self.ranks: list[int] = []
        self.stated_at = 1
        self.shown: dict[int, dict[int, list[str]]] = {}  # by the statement's number and the rank
        self.shown_at: dict[int, int] = {}
        self.errors: dict[int, dict[int, str]] = {}
        self._read(_comments(text))
        self.framework = self._framework()
        if not self.shown and not self.errors and not any(isinstance(node, ast.Assert) for node in self._nodes()):
            self._refuse(self.stated_at, "the case shows nothing and raises nothing, so that it cannot fail")
        if self.problems:
            raise CaseError(sorted(self.problems))
        self.steps = tuple(self._steps(text, numbers))

    def _refuse(self, line: int, problem: str) -> None:
        self.problems.append((line, problem))

    def _nodes(self) -> Iterator[ast.AST]:
        for node in self.body:
            yield from ast.walk(node)

    def _read(self, comments: Iterator[tuple[int, str]]) -> None:
        goes_on: tuple[int, list[list[str]]] = (
            0,
            [],
        )  # the line on which what is shown may go on, and where it is kept
        for line, comment in comments:
            more = _MORE.match(comment)
            if more and line == goes_on[0]:
                for texts in goes_on[1]:
                    texts.append(more["text"])
                goes_on = (line + 1, goes_on[1])
                continue
            try:
                marker = marker_in(comment)
            except ValueError as error:
                self._refuse(line, str(error))
                continue
            if marker is not None:
                goes_on = (line + 1, self._take(marker, line))

    def _take(self, marker: Marker, line: int) -> list[list[str]]:
        """Note what *marker* says, and return where the text is kept that may go on on the next lines."""
        if marker.kind == RANKS:
            self._take_ranks(marker, line)
            return []
        index = self._statement_before(marker, line)
        missing = [rank for rank in marker.ranks if self.ranks and rank >= max(self.ranks)]
        if missing:
            self._refuse(line, f"there is no rank {missing[0]} of {max(self.ranks)}")
        if index is None:
            return []
        if marker.kind == RAISES:
            errors = self.errors.setdefault(index, {})
            if set(errors) & set(marker.ranks):
                self._refuse(line, "what the statement raises is said twice")
            errors |= dict.fromkeys(marker.ranks, marker.text)
            return []
        self.shown_at.setdefault(index, line)
        texts = [self.shown.setdefault(index, {}).setdefault(rank, []) for rank in marker.ranks]
        for text in texts:
            text.append(marker.text)
        return texts

    def _take_ranks(self, marker: Marker, line: int) -> None:
        if self.ranks:
            self._refuse(line, "for how many ranks a case is, it says once")
        self.ranks = [int(number) for number in marker.text.split(",")]
        self.stated_at = line
        if not all(self.ranks):
            self._refuse(line, "a case is for 1 rank or more")

    def _statement_before(self, marker: Marker, line: int) -> int | None:
        index = max((number for number, node in enumerate(self.body) if _first_line(node) <= line), default=None)
        if index is None:
            self._refuse(line, f"there is no statement before it that {marker.kind} anything")
        elif line < _last_line(self.body[index]):
            first = _first_line(self.body[index])
            self._refuse(line, f"{marker.kind} stands inside the statement of line {first}, and belongs after it")
        return index

    def _framework(self) -> str:
        names = {alias.name for node in self._nodes() if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in self._nodes() if isinstance(node, ast.ImportFrom) and not node.level}
        owners = {re.split(r"_\d\b|\.", name.removeprefix("shim.frontends."))[0] for name in names}
        found = sorted(owners & set(KINDS) - {"numpy"})
        if len(found) != 1:
            told = f"imports {' and '.join(found)}" if found else "imports none of torch, paddle and mindspore"
            self._refuse(self.stated_at, f"which framework the case is for cannot be told: it {told}")
        return "".join(found[:1])

    def _steps(self, text: str, numbers: Sequence[int]) -> Iterator[Step]:
        lines = text.split("\n")  # a form feed ends no line for Python
        for index, node in enumerate(self.body):
            first, last, shown = _first_line(node), _last_line(node), self.shown.get(index)
            texts = {rank: "\n".join(parts) for rank, parts in (shown or {}).items()}
            wanted = Wanted(texts, _number(numbers, self.shown_at[index])) if shown else None
            alone = sum(_first_line(other) <= last and _last_line(other) >= first for other in self.body) == 1
            source = "\n".join(lines[first - 1 : last]) if alone else ast.unparse(node)
            yield Step(source, _number(numbers, first), 0, wanted, errors=self.errors.get(index, {}))


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
