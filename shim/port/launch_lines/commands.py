"""Find the launch lines of a text: commands of a shell, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shim.port.entries import Entry
from shim.port.launch_lines.edits import Edit, entry_at
from shim.port.launch_lines.launch import Launch, Refused
from shim.port.launch_lines.launchers import Launcher, written_for
from shim.port.launch_lines.options import local_rank_notes, read_launch
from shim.port.launch_lines.route import Route
from shim.port.launch_lines.shell_words import PlacedWord, split_words

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
        except Refused as refusal:
            yield entry_at(text, found.start, "left", refusal.note)
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
        raise Refused("launch-nodes", f"{outer[1]} starts the launcher", "start the ranks on one host: shim run -n N")


def _edit(text: str, found: Found, launch: Launch, words: list[PlacedWord], route: Route) -> Edit:
    """Return the edit that replaces the launcher and its options: the program and its arguments stay as they are."""
    program = words[launch.program]
    written = " ".join(written_for(route.target, launch, found.through_module))
    before = text[words[launch.program - 1].end if launch.program else found.end : program.start]
    return Edit(found.start, program.start, written + (before if "\n" in before else " "))
