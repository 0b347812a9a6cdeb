"""Port the launch lines of a text that is no Python: a script, a page, a Dockerfile, a Makefile, YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shim.port.entries import Entry
from shim.port.launch_lines.argument_lists import port_lists_of_strings
from shim.port.launch_lines.commands import port_commands
from shim.port.launch_lines.edits import Edit, Launched, apply_edits, entry_at
from shim.port.launch_lines.launch import Note
from shim.port.launch_lines.route import Route, route_of
from shim.port.plan import Plan

_OVER_LINES = Note("launch-incomplete", "the command goes on in the list's next lines", "change the launcher by hand")


def port_launch_lines(text: str, plan: Plan, parts: Sequence[tuple[int, int]] | None = None) -> Launched:
    """Return *text* with its launch lines ported by *plan*. *parts*: only those between these places, which are commands of a shell."""
    route = route_of(plan)
    if parts is None:
        found = [*port_commands(text, 0, len(text), route), *port_lists_of_strings(text, route), *_items(text, route)]
    else:
        found = [each for start, end in parts for each in port_commands(text, start, end, route)]
    edits = [each for each in found if isinstance(each, Edit)]
    return apply_edits(text, edits, [each for each in found if isinstance(each, Entry)])


def _items(text: str, route: Route) -> Iterator[Entry]:
    """Give an entry for each launcher that is an item of a list in YAML: where its arguments are is not certain."""
    commands = "|".join(re.escape(name) for each in route.sources for name in (*each.commands, *each.modules))
    for item in re.finditer(rf"^[ \t]*-[ \t]+([\"']?)({commands})\1[ \t]*$", text, re.MULTILINE):
        yield entry_at(text, item.start(2), "left", _OVER_LINES)
