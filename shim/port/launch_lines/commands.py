"""Find and port the launch lines of a text: commands of a shell, wherever they stand, and lists of arguments.

Such a list is ``["torchrun", "--nproc_per_node", "2", "train.py"]`` in JSON, YAML, Dockerfiles and Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shim.port.launch_lines.launch import Edit, Launch, Word, entry_at
from shim.port.launch_lines.launchers import Launcher, Route, written_for
from shim.port.launch_lines.options import local_rank_notes, read_launch
from shim.port.plan import Entry, Left

# One piece of a word. Quotes and substitutions may have blanks; braces are those of format strings and of templates. What is quoted may go on
# over lines that a backslash joins.
_PIECE = re.compile(
    r"""(?P<quoted>"(?:[^"\\\n]|\\.|\\\n)*"|'[^'\n]*')"""
    r"""|(?P<substitution>\$\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\$?\{\{?[^{}\n]*\}\}?|<[\w.\- ]+>)"""
    r"""|(?P<escaped>\\[^\nnrt])"""
    r"""|(?P<plain>[^\s"'\\;|&<>()`{}#]|\#(?<=\S\#))"""
)
_BETWEEN = re.compile(r"(?:[ \t]|\\{1,2}[ \t]*\n)+")  # in a string of Python the backslash may be escaped itself


@dataclass(frozen=True)
class PlacedWord:
    """A word, and its place in the text."""

    word: Word
    start: int
    end: int


def split_words(text: str, start: int, end: int) -> list[PlacedWord]:
    """Return the words of the command that goes on at *start*, at the latest until *end*: up to the end of the line, if no backslash continues
    it, or to what ends a command in a shell or a code span in Markdown."""
    words = []
    position = start
    while between := _BETWEEN.match(text, position, end):
        word = _word_at(text, between.end(), end)
        if word is None:
            break
        words.append(word)
        position = word.end
    return words


def _word_at(text: str, start: int, end: int) -> PlacedWord | None:
    position, value = start, ""
    while piece := _PIECE.match(text, position, end):
        value += piece[0][1:-1] if piece["quoted"] else piece[0]
        position = piece.end()
    if position == start:
        return None
    return PlacedWord(Word(value, text[start:position]), start, position)


_PLAIN_PYTHON = re.compile(r"python[\d.]*")
_OUTER = re.compile(r"(?<![\w./-])(srun|ssh|pdsh|parallel-ssh|mpirun|mpiexec|accelerate|deepspeed)\b[^\n;|&`]*$")


@dataclass(frozen=True)
class Found:
    """A launcher's name in a text: it begins at ``start``, and its options at ``end``."""

    launcher: Launcher
    start: int
    end: int
    through_module: bool
    module: str = ""


def port_commands(text: str, start: int, end: int, route: Route) -> Iterator[Edit | Entry]:
    """Give what is to be changed in *text* between *start* and *end*, and what is to be told of its launch lines."""
    position = start
    while (found := _find(text, position, end, route)) is not None:
        position = found.end
        words = split_words(text, found.end, end)
        try:
            launch = read_launch(found.launcher, [word.word for word in words])
            if launch is None:
                continue
            _check_outer(text, found.start)
            edit = _edit(text, found, launch, words, route)
        except Left as left:
            yield entry_at(text, found.start, "left", left.note)
            continue
        yield edit
        notes = [*launch.notes, *local_rank_notes(found.module, [word.word for word in words])]
        yield from (entry_at(text, found.start, "changed", note) for note in notes)


def _find(text: str, start: int, end: int, route: Route) -> Found | None:
    match = route.pattern.search(text, start, end)
    if match is None:
        return None
    if (module := match["module"]) is None:
        return Found(route.launcher_of(match["command"]), match.start("command"), match.end(), False)
    if _PLAIN_PYTHON.fullmatch(match["python"]):
        return Found(route.launcher_of(module), match.start("python"), match.end(), False, module)
    return Found(route.launcher_of(module), match.start("module"), match.end(), True, module)


def _check_outer(text: str, start: int) -> None:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if outer := _OUTER.search(line):
        raise Left("launch-nodes", f"{outer[1]} starts the launcher", "start the ranks on one host: shim run -n N")


def _edit(text: str, found: Found, launch: Launch, words: list[PlacedWord], route: Route) -> Edit:
    """Return the edit that replaces the launcher and its options: the program and its arguments stay as they are."""
    program = words[launch.program]
    written = " ".join(written_for(route.target, launch, found.through_module))
    before = text[words[launch.program - 1].end if launch.program else found.end : program.start]
    return Edit(found.start, program.start, written + (before if "\n" in before else " "))


_STRING = r"""(?:"[^"\\\n]*"|'[^'\\\n]*')"""
_LIST = re.compile(rf"\[\s*{_STRING}(?:\s*,\s*{_STRING})*\s*,?\s*\]")


def port_lists_of_strings(text: str, route: Route) -> Iterator[Edit | Entry]:
    """Give what is to be changed in the lists of plain strings in *text*, and what is to be told of them."""
    for found in _LIST.finditer(text):
        strings = re.finditer(_STRING, found[0])
        words = [
            PlacedWord(Word(each[0][1:-1], each[0]), found.start() + each.start(), found.start() + each.end())
            for each in strings
        ]
        yield from port_arguments(text, words, route)


def port_arguments(text: str, words: Sequence[PlacedWord], route: Route) -> Iterator[Edit | Entry]:
    """Give what is to be changed in one list, whose elements are *words*."""
    found = _find_in_list(words, route)
    if found is None:
        return
    first, options, name, through_module = found
    rest = words[options:]
    launcher = route.launcher_of(name)
    try:
        launch = read_launch(launcher, [word.word for word in rest], in_list=True)
        if launch is None:
            return
        written = written_for(route.target, launch, through_module)
    except Left as left:
        yield entry_at(text, words[first].start, "left", left.note)
        return
    quote = '"' if words[first].word.source.endswith('"') else "'"
    elements = [
        word if launch.ranks_are_expression and word == launch.ranks else f"{quote}{word}{quote}" for word in written
    ]
    yield Edit(
        words[first].start, rest[launch.program].start, ", ".join(elements) + _separator(text, rest, launch.program)
    )
    notes = [*launch.notes, *local_rank_notes(name, [word.word for word in rest])]
    yield from (entry_at(text, words[first].start, "changed", note) for note in notes)


def _find_in_list(words: Sequence[PlacedWord], route: Route) -> tuple[int, int, str, bool] | None:
    """Return the numbers of the first element to replace and of the first option, the launcher's name, and whether it follows ``-m``."""
    texts = [word.word.text for word in words]
    for number, text in enumerate(texts):
        two = f"{text} {texts[number + 1]}" if number + 1 < len(texts) else ""
        for name, length in ((text, 1), (two, 2)):
            for launcher in route.sources:
                if name in launcher.modules and number > 0 and texts[number - 1] == "-m":
                    return number, number + length, str(name), True
                if name in launcher.commands:
                    return number, number + length, str(name), False
    return None


def _separator(text: str, words: Sequence[PlacedWord], program: int) -> str:
    between = text[words[program - 1].end : words[program].start] if program else ", "
    return between if re.fullmatch(r",\s*", between) else ", "
