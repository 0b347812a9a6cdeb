"""Takes the text of a document apart into examples: prompts or blocks of code, and what is shown after them.

Two ways of writing are read. With prompts, what stands between the prompts is shown; a continued statement has ``...`` or
one more ``>>>``, as PyTorch writes it. Without, in a block of code, comments show something, as ``claims`` reads them, or a block of output after it.
In both, comments that follow code may show what each rank gives, as Paddle writes it. ``labels`` knows how documents say of which rank they speak.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from shim.conformance.examples.example import EVERY_RANK, Example, Step, Wanted
from shim.conformance.examples.reading import labels
from shim.conformance.examples.reading.claims import claims_of, is_sign_of_output
from shim.conformance.examples.reading.labels import ranks_of

_PROMPT = re.compile(r"\s*(>>>|\.\.\.)( |$)")
_IMPORT = re.compile(
    r"^[ \t]*(?:>>>|\.\.\.)?[ \t]*(?:import|from)[ \t]+(?:shim\.frontends\.)?(torch|paddle|mindspore)(?:_\d)?\b",
    re.MULTILINE,
)
_BLOCK = re.compile(r"\s*\.\. (code-block|code|sourcecode)::\s*(python|pycon|ipython|py)?\d?\s*$")
_OUTPUT = re.compile(
    r"\s*\.\. (?:(?P<sure>output|testoutput)|(?:code-block|code|sourcecode))::\s*(?P<text>text|none|console|output)?\s*$"
)
_RAISES = re.compile(r"#.*\b[Rr]aises (an )?exception")
_NEW_SECTION = re.compile(r"#.*\b([Aa]nother example|[Cc]ase \d|[Uu]sage \d|[Ee]xample with)\b")


@dataclass
class _Line:
    """A line of code of an example with its number in the text, or what is shown (``code`` is None)."""

    number: int
    code: str | None
    shown: str = ""
    after_gap: bool = False


@dataclass
class _Block:
    """A block of code, or of prompts. It is ``marked`` where it says that it is Python; ``output`` is the block of output after it."""

    first: int
    lines: list[_Line] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    marked: bool = True
    output: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.raw)


def framework_of(code: str) -> str | None:
    """Return the framework that *code* imports first, None for none of them."""
    found = _IMPORT.search(code)
    return found[1] if found else None


def examples_in(
    text: str, framework: str, function: str, place: str, broken: list[tuple[int, str]] | None = None
) -> list[Example]:
    """Return the examples of the document *text*, which is about *function*.

    A block that is no valid Python goes to *broken*, with the line in *text* and what is wrong; with None, it is an example, which fails.
    So it is for docstrings, which are about one thing: how many ranks an example needs, all of the text may say, and else the paragraph before it.
    """
    found = []
    for number, block in enumerate(_blocks(text), start=1):
        context = text if broken is None else _paragraph_before(text, block)
        try:
            example = example_of(block.lines, framework, function, place, number, block.text, context, block.output)
        except SyntaxError as error:
            line, source = (
                _line_of(error, block),
                "\n".join(line.code or "" for line in block.lines if line.code is not None),
            )
            if broken is not None:
                broken.append((line, error.msg))
                continue
            step = Step(source, line, 0)
            example = Example(framework, function, number, block.text, place, (step,), ranks_of(block.text, text, ()))
        if example is not None:
            found.append(example)
    return found


def _paragraph_before(text: str, block: _Block) -> str:
    lines = ["" if _BLOCK.match(line) else line for line in text.expandtabs().splitlines()[: block.first - 1]]
    return re.split(r"\n\s*\n", "\n".join(lines).rstrip())[-1]


def _line_of(error: SyntaxError, block: _Block) -> int:
    """Return the line of the text that *error* is at, in the code of *block*."""
    numbers = [line.number for line in block.lines if line.code is not None]
    return numbers[min(error.lineno or 1, len(numbers)) - 1]


def _blocks(text: str) -> list[_Block]:
    """Return the blocks with prompts, and those of code without; one that is not said to be Python has to be, and to import a framework."""
    others = [block for block in code_blocks(text) if not any(_begins(line) for line in block.raw)]
    code = [block for block in others if block.marked or (framework_of(block.text) and _is_python(block))]
    return sorted([*_prompt_blocks(text), *code], key=lambda block: block.first)


def _is_python(block: _Block) -> bool:
    try:
        ast.parse("\n".join(line.code or "" for line in block.lines))
    except SyntaxError:
        return False
    return True


def _begins(line: str) -> bool:
    return line.lstrip().startswith(">>>") and _PROMPT.match(line) is not None


def _prompt_blocks(text: str) -> Iterator[_Block]:
    """Cut at every directive and heading between prompts: what follows is another example with names of its own."""
    block: _Block | None = None
    gap = False
    for number, line in enumerate(text.expandtabs().splitlines(), start=1):
        prompt = _PROMPT.match(line)
        if prompt and (block is not None or _begins(line)):
            if block is None:
                block = _Block(number)
            block.lines.append(_Line(number, line[prompt.end() :].rstrip(), after_gap=gap))
            block.raw.append(line)
            gap = False
        elif block is not None:
            if _BLOCK.match(line) or _is_heading(line):
                yield block
                block, gap = None, False
            elif not line.strip():
                gap = True
                block.raw.append(line)
            elif not gap or labels.resumes(line):
                gap = False
                block.lines.append(_Line(number, None, line.strip("\n")))
                block.raw.append(line)
    if block is not None:
        yield block


def _is_heading(line: str) -> bool:
    return bool(re.match(r"\s*(Tutorial )?[Ee]xamples?( \d+)?\s*::?\s*$", line))


def code_blocks(text: str) -> Iterator[_Block]:
    """Give the blocks of code of *text*, each with the block of output that follows it."""
    lines = text.expandtabs().splitlines()
    for start, line in enumerate(lines):
        directive = _BLOCK.match(line)
        body = _body_of(lines, start) if directive else []
        if directive and body:
            dedented = textwrap.dedent("\n".join(inner for _, inner in body)).split("\n")
            lines_of_code = [_Line(number, code) for (number, _), code in zip(body, dedented, strict=True)]
            output = _output_after(lines, body[-1][0])
            yield _Block(start + 1, lines_of_code, [inner for _, inner in body], directive[2] is not None, output)


def _body_of(lines: list[str], start: int) -> list[tuple[int, str]]:
    """Return the lines that are indented below the directive at *start*, with their numbers from 1."""
    margin = len(lines[start]) - len(lines[start].lstrip())
    body: list[tuple[int, str]] = []
    for number in range(start + 1, len(lines)):
        inner = lines[number]
        if inner.strip() and len(inner) - len(inner.lstrip()) <= margin:
            break
        if body or (inner.strip() and not inner.strip().startswith(":")):
            body.append((number + 1, inner))
    return body


def _output_after(lines: list[str], end: int) -> str:
    """Return the text of the block of output that follows the first *end* lines, empty for none.

    It says that it is output, or it is text and stands next to the code or below a paragraph such as "Output:".
    """
    places = [number for number in range(end, len(lines)) if lines[number].strip()]
    before = 0
    while before < len(places) and places[before] - places[0] == before and not _OUTPUT.match(lines[places[before]]):
        before += 1
    block = _OUTPUT.match(lines[places[before]]) if before < len(places) else None
    if block is None or (before and not is_sign_of_output(lines[places[before - 1]])):
        return ""
    text = textwrap.dedent("\n".join(line for _, line in _body_of(lines, places[before]))).strip()
    is_output = bool(block["sure"] or block["text"] or before) and framework_of(text) is None
    shown = [line for line in text.splitlines() if not line.startswith("$ ")]
    return "\n".join(shown) if is_output else ""


def example_of(
    lines: list[_Line],
    framework: str,
    function: str,
    place: str,
    number: int,
    text: str,
    context: str,
    output: str = "",
) -> Example | None:
    """Make the example of *lines*; None where there is no code in them. Raises SyntaxError where it is no Python."""
    code = [line for line in lines if line.code is not None]
    tree = ast.parse("\n".join(line.code or "" for line in code))
    if not tree.body:
        return None
    steps, unread = _steps(tree, lines, code)
    ranks = ranks_of(text, context, steps)
    return Example(framework, function, number, text, place, tuple(steps), ranks, output=output, unread=tuple(unread))


def _steps(tree: ast.Module, lines: list[_Line], code: list[_Line]) -> tuple[list[Step], list[int]]:
    """Return the steps, and the lines of the comments that look like outputs and are not read."""
    starts = [min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) for node in tree.body]
    ends = [node.end_lineno or node.lineno for node in tree.body]
    shown, read = _shown_after(lines, code, ends)
    claims, others = claims_of(tree, "\n".join(line.code or "" for line in code))
    for index, claim in claims.items():
        by_rank = labels.by_rank(claim.text.splitlines())
        shown.setdefault(index, Wanted(by_rank, code[ends[index] - 1].number, claim.of, claim.bare))
    unread = [code[line - 1].number for line in others if code[line - 1].number not in read]
    steps: list[Step] = []
    section = 0
    restricted: frozenset[int] | None = None
    begin = 0
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        comments = [line.code or "" for line in code[begin : start - 1]]
        if any(_NEW_SECTION.search(comment) for comment in comments):
            section += 1
        for comment in comments:
            restricted = labels.process_of(comment, restricted)
        source = "\n".join(line.code or "" for line in code[start - 1 : end])
        raises = bool(_RAISES.search(source))
        step = Step(source, code[start - 1].number, section, None, restricted, raises)
        rank = labels.rank_of(comments[-1]) if comments else None
        steps.append(replace(step, wanted=_told_of(shown.get(index), rank)))
        begin = end
    return steps, unread


def _told_of(wanted: Wanted | None, rank: int | None) -> Wanted | None:
    """Return *wanted*, which is shown for *rank* only where the comment before the code says so."""
    if wanted is None or rank is None or set(wanted.text) != {EVERY_RANK}:
        return wanted
    return replace(wanted, text={rank: wanted.text[EVERY_RANK]})


def _shown_after(lines: list[_Line], code: list[_Line], ends: list[int]) -> tuple[dict[int, Wanted], set[int]]:
    """Return what is shown after each step, by the step's number: text between prompts, or comments. Return the lines of these, too."""
    position = {id(line): number for number, line in enumerate(code, start=1)}
    step_of_line = [sum(end < number for end in ends) for number in range(1, len(code) + 2)]
    texts: dict[int, list[tuple[int, str]]] = {}
    current = -1
    last_code_end = 0
    for line in lines:
        if line.code is None:
            if labels.is_label(line.shown) or not line.shown.strip().startswith("#"):
                texts.setdefault(current, []).append((line.number, line.shown))
            continue
        number = position[id(line)]
        index = step_of_line[number - 1]
        inside = index < len(ends) and any(
            start <= number <= end for start, end in [(_start(ends, index), ends[index])]
        )
        stripped = line.code.strip()
        if stripped.startswith("#") and number > last_code_end:
            if current >= 0 and labels.is_shown(stripped) and not line.after_gap:
                texts.setdefault(current, []).append((line.number, stripped.lstrip("# ")))
        elif stripped and inside:
            current = index
            last_code_end = ends[index]
    wanted = {}
    for index, shown in texts.items():
        by_rank = labels.by_rank([text for _, text in shown])
        if index >= 0 and by_rank:
            wanted[index] = Wanted(by_rank, shown[0][0])
    return wanted, {number for shown in texts.values() for number, _ in shown}


def _start(ends: list[int], index: int) -> int:
    return ends[index - 1] + 1 if index else 1
