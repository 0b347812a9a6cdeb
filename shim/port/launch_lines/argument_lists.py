"""Port launch lines that are lists of arguments: ``["torchrun", "--nproc_per_node", "2", "train.py"]`` in JSON, YAML, Dockerfiles and Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shim.port.entries import Entry
from shim.port.launch_lines.edits import Edit, entry_at
from shim.port.launch_lines.launch import Refused, Word
from shim.port.launch_lines.launchers import written_for
from shim.port.launch_lines.options import local_rank_notes, read_launch
from shim.port.launch_lines.route import Route
from shim.port.launch_lines.shell_words import PlacedWord

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
    found = _find(words, route)
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
    except Refused as refusal:
        yield entry_at(text, words[first].start, "left", refusal.note)
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


def _find(words: Sequence[PlacedWord], route: Route) -> tuple[int, int, str, bool] | None:
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
