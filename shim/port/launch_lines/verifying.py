"""The command with which ``--verify`` can run a ported project: one of its own launch lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shim.port.launch_lines.commands import split_words
from shim.port.launch_lines.launchers import LAUNCHERS
from shim.port.launch_lines.options import read_launch
from shim.port.plan import FileResult, Left, Result

# A launch line at the beginning of a line of a shell, a Makefile, YAML, or of what Markdown shows as code.
_LINE = re.compile(r"^[ \t]*(?:[$%@`-]+[ \t]*|run:[ \t]*|RUN[ \t]+|exec[ \t]+)*(shim run)(?=[ \t])", re.MULTILINE)
_PLAIN = re.compile(r"[\w./=,:@%+-]+")  # words that mean the same in every run
_PROSE = (".md", ".py", ".rst", ".txt")


def command_for(result: Result) -> str:
    """Return a launch line of the port that starts a program which is there; else one for a ported program; nothing if no program is ported."""
    programs = [file for file in result.changed if file.path.suffix == ".py" and not file.is_new]
    if not programs:
        return ""
    for file in sorted(result.files, key=lambda file: file.path.suffix in _PROSE):
        for command in _commands(file):
            return command
    started = [file for file in programs if "__main__" in file.texts[1]] or programs
    return f"shim run -n 2 {os.path.relpath(started[0].target) if len(started) == 1 else 'PROGRAM'}"


def _commands(file: FileResult) -> Iterator[str]:
    text = file.texts[1]
    for found in _LINE.finditer(text):
        words = split_words(text, found.end(1), len(text))
        if words and text[words[-1].end : words[-1].end + 1] in (">", "<") and words[-1].word.source.isdecimal():
            del words[-1]  # of 2>&1
        launch = None
        with suppress(Left):
            launch = read_launch(LAUNCHERS["shim"], [each.word for each in words])
        if launch is None or not all(_PLAIN.fullmatch(each.word.source) for each in words):
            continue
        program = words[launch.program].word.source
        path = Path(*program.split(".")).with_suffix(".py") if launch.is_module else Path(program)
        command = " ".join(["shim run", *(each.word.source for each in words)])
        folder = os.path.relpath(file.target.parent)
        if path.is_file():
            yield command
        elif (folder / path).is_file():
            yield f"cd {folder} && {command}"
