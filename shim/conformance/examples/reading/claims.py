"""Which comments beside code claim what the code gives: ``print(x)  # tensor([3.])``, ``# -> 3``, and ``# Output:`` with the lines after it.

A comment without such a sign is a claim where it reads as a value that Python could print, alone or after a word: ``# prints 3``, ``# expected [1]``.
Beside an assignment or a call, which are there to do something, it may still be a remark, which the value alone can tell.
Anything else is a remark. One that looks like an output and is no claim is told, so that nobody takes it for checked.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shim.conformance.examples.reading.printed_values import contains_tensor, value_in

_SIGN = re.compile(
    r"(?:(?P<arrow>[-=]+>|→|⇒)|(?:(?:expected|should)\s+)?(?:output|out|prints?|result)s?\s*(?:\[\d+\]\s*)?:)\s*(?P<text>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_EXPECTED = re.compile(r"expected\s*:\s*(?P<text>.*)$", re.IGNORECASE | re.DOTALL)
_VERB = (
    r"prints?|printed|outputs?|shows?|displays?|returns?|gives?|yields?|equals?|becomes?|contains?|holds?|expect(?:s|ed)?|results?"
    r"|is|are|be|now|will|should|would|must"
)
# Words after which a value is claimed, but no other text: "prints 3", "expected: [1, 2]", "should be 4", "= 3"
_WORDS = re.compile(
    rf"(?:(?:{_VERB})\b[ \t]*(?:in\b)?)*(?:[:=]+|(?<=\w)\s)\s*(?P<text>\S.*)$", re.IGNORECASE | re.DOTALL
)
# "x is now tensor([3.])", "x = 3"
_NAMED = re.compile(rf"`?(?P<name>[A-Za-z_]\w*)`?\s*(?P<text>(?:[:=]|(?:{_VERB})\b).*)$", re.IGNORECASE | re.DOTALL)
_OUTPUT = re.compile(r"\b(?:outputs?|prints?|printed|shows?|results?|gives)\b[^.]*$", re.I)
_ELIDED = re.compile(r"[\[(]+\s*-?\d[\d\s.,\[\]+-]*(?:\.\.\.|$)")  # "[1, ..., 9]", and "[[1, 2]," that goes on
# "prints the sum", "[3.] (the sum)"
_SAYS_OUTPUT = re.compile(
    r"(?:(?:will|should|would|must)\s+)?(?:prints?|outputs?|displays?|shows?|gives?|returns?|expect(?:s|ed)?)\b|[\[(]+\s*-?\d",
    re.IGNORECASE,
)
_NUMBER_FIRST = re.compile(r"-?[\d.]+\s*[,;=(]")  # "6 = 1 + 2 + 3"
_COMPOUND = (ast.If, ast.With, ast.For, ast.While, ast.Try)  # statements in which others may print
_MOST_LINES = 12  # of a value beside code that goes on below


def is_sign_of_output(line: str) -> bool:
    """Tell whether the text on a *line* announces that the block after it is what the code before it prints."""
    return bool(_OUTPUT.search(line.strip().rstrip("*_`:")))


class Claim(NamedTuple):
    """What a document claims of a statement: ``text`` is printed, or displayed as its value.

    ``of`` is None where the statement is there to show something. Else it has names of variables: the first that is no module has the value,
    where the statement has none itself. A ``bare`` claim does not say that it is about an output, and may be a remark.
    """

    text: str
    of: tuple[str, ...] | None = None
    bare: bool = False


class _Shown(NamedTuple):
    """An expression that prints something or is a value, or a statement that gives a value to names (``of``); it ends on ``line``."""

    line: int
    node: ast.stmt
    of: tuple[str, ...] | None = None


def claims_of(tree: ast.Module, code: str) -> tuple[Mapping[int, Claim], list[int]]:
    """Return what the comments of *code*, which *tree* is of, claim of each statement at its top, by the statement's number from 0.

    Return also the lines of the other comments that look like outputs, from 1.
    A statement with several lines that print is claimed as a whole: where one of them has no claim beside it, no claim of the others counts.
    Nothing is read inside functions, classes and loops, whose lines may run never or several times.
    """
    if "#" not in code:
        return {}, []
    comments = _Comments(code)
    found: dict[int, Claim] = {}
    read: set[int] = set()
    for index, node in enumerate(tree.body):
        shown = list(_what_shows(node))
        claims = [comments.beside(each) or comments.below(each) for each in shown]
        if not claims or None in claims:
            of = shown[-1].of if shown else None if isinstance(node, _COMPOUND) else ()
            claims = [comments.below(_Shown(node.end_lineno or node.lineno, node, of), signed=True)]
        read_here = [claim for claim in claims if claim is not None]
        if len(read_here) == len(claims):
            last_claim = read_here[-1][0]
            found[index] = last_claim._replace(text="\n".join(claim.text for claim, _ in read_here))
            read.update(*(lines for _, lines in read_here))
    return found, [line for line in comments.like_outputs() if line not in read]


def _what_shows(node: ast.stmt) -> Iterator[_Shown]:
    """Give each expression in *node* that prints something, is a value or gives a name one, in their order."""
    line = node.end_lineno or node.lineno
    match node:
        case ast.Expr(value=value):
            yield _Shown(line, node, _written_by(value))
        case (
            ast.Assign(targets=[ast.Name(id=name), *_], value=value)
            | ast.AugAssign(target=ast.Name(id=name), value=value)
        ):
            if not _is_literal(value) or isinstance(node, ast.AugAssign):
                yield _Shown(line, node, (name,))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if not _is_literal(value):
            yield _Shown(line, node, (name,))
        case ast.If() | ast.With():
            for inner in [*node.body, *getattr(node, "orelse", [])]:
                if isinstance(inner, (ast.If, ast.With)) or _prints(inner):
                    yield from _what_shows(inner)


def _is_literal(value: ast.expr) -> bool:
    """Tell whether *value* says itself what it is, so that a value beside it is another one: ``port = 29500  # 29501``."""
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError):
        return False
    return True


def _written_by(value: ast.expr) -> tuple[str, ...] | None:
    """Return the names of what a call may have written to: the object whose method it is, or its first argument. None for what only shows."""
    if not isinstance(value, ast.Call) or _is_print(value):
        return None
    owner = [value.func.value] if isinstance(value.func, ast.Attribute) else []
    return tuple(node.id for node in [*owner, *value.args[:1]] if isinstance(node, ast.Name))


def _prints(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _is_print(node.value)


def _is_print(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"


_Read = tuple[Claim, list[int]]  # what is claimed, and the lines of the comments


class _Comments:
    """The comments of a text by their lines, each with whether it stands alone on it."""

    def __init__(self, code: str) -> None:
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        found = [token for token in tokens if token.type == tokenize.COMMENT]
        self._texts = {token.start[0]: token.string.lstrip("#").removeprefix(" ") for token in found}
        self._before = {token.start[0]: token.line[: token.start[1]].strip() for token in found}
        self._columns = {token.start[0]: token.start[1] for token in found}
        self._lines = [*code.split("\n"), ""]  # the line after that with number n is the n-th
        self._alone = {line for line, before in self._before.items() if not before}

    def beside(self, shown: _Shown) -> _Read | None:
        """Return what the comment on the line of *shown* claims, which may go on in comments below; None for nothing."""
        text = self._texts.get(shown.line, "").strip()
        lines = [shown.line]
        while text:
            if claim := _claim_in(text, shown):
                return claim, lines
            if not contains_tensor(text) or len(lines) > _MOST_LINES or lines[-1] + 1 not in self._alone:
                return None
            lines.append(lines[-1] + 1)
            text = f"{text}\n{self._texts[lines[-1]]}"
        return None

    def below(self, shown: _Shown, signed: bool = False) -> _Read | None:
        """Return what the comments right below *shown* claim; where they are to be *signed*, only after ``# Output:`` or the like."""
        lines: list[int] = []
        while (line := shown.line + 1 + len(lines)) in self._alone and self._columns[line] <= shown.node.col_offset:
            lines.append(line)
        texts = [self._texts[line] for line in lines]
        if not texts:
            return None
        if sign := _sign_of(texts[0].strip(), shown):
            text = _after_sign("\n".join([sign["text"], *texts[1:]]).strip(), sign, shown)
            return (Claim(text, shown.of), lines) if text else None
        if shown.of is not None and self._lines[lines[-1]].strip():  # it may be about the code right below it
            return None
        claim = _claim_in("\n".join(texts).strip(), shown, signed or shown.of is not None)
        return claim and (claim, lines)

    def like_outputs(self) -> Iterator[int]:
        """Give the lines of the comments that a reader takes for outputs."""
        for line, text in self._texts.items():
            code = self._before[line]
            if _looks_like_output(text.strip()) or (code and _looks_like_output_beside(text.strip(), "print(" in code)):
                yield line


def _sign_of(text: str, shown: _Shown) -> re.Match[str] | None:
    """Return the sign that *text* begins with, None without one; "expected" is one for what is printed alone."""
    return _SIGN.match(text) or (_EXPECTED.match(text) if _prints(shown.node) else None)


def _after_sign(text: str, sign: re.Match[str], shown: _Shown) -> str | None:
    """Return what *text* after a *sign* claims: a value, or any text; but what an arrow says of what is done may be a remark."""
    may_be_remark = shown.of is not None and sign["arrow"]
    return value_in(text) or (None if may_be_remark else text or None)


def _claim_in(text: str, shown: _Shown, worded: bool = False) -> Claim | None:
    """Return what a comment's *text* claims; where it is to be *worded*, it is no bare value."""
    is_assigned = shown.of is not None and not isinstance(shown.node, ast.Expr)
    if sign := _sign_of(text, shown):
        value = _after_sign(sign["text"].strip(), sign, shown)
        if value and (not is_assigned or value_in(value)):
            return Claim(value, shown.of, bare=is_assigned)
    if not worded and (value := value_in(text)):
        return Claim(value, shown.of, bare=shown.of is not None)
    if value := _value_after_words(text, _prints(shown.node)):
        return Claim(value, shown.of, bare=is_assigned)
    named = _NAMED.match(text)
    if named and any(isinstance(node, ast.Name) and node.id == named["name"] for node in ast.walk(shown.node)):
        value = _value_after_words(named["text"], False)
        of = None if _prints(shown.node) else (named["name"],)
        return None if value is None else Claim(value, of, bare=of is not None)
    return None


def _value_after_words(text: str, is_printed: bool) -> str | None:
    words = _WORDS.match(text)
    if words is None:
        return None
    if is_printed and (quoted := re.fullmatch(r"([\"'])(.*)\1", words["text"])):
        return quoted[2]
    return value_in(words["text"])


def _looks_like_output(text: str) -> bool:
    if any(sign.match(text) for sign in (_SIGN, _EXPECTED, _ELIDED)) or _value_after_words(text, True):
        return True
    return contains_tensor(text) or (text.startswith(("[", "(", "{")) and value_in(text) is not None)


def _looks_like_output_beside(text: str, prints: bool) -> bool:
    """Tell the same of a *text* beside code, which *prints* or not: a number beside other code is a remark."""
    named = _NAMED.match(text)
    if _SAYS_OUTPUT.match(text) or (named and _value_after_words(named["text"], False)):
        return True
    return prints and bool(_NUMBER_FIRST.match(text) or value_in(text))
