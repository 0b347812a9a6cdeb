"""What a port did to one file: counts that the port itself has no part in."""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

from campaigns.ported_packages.sites import Site, comments_of, sites_of, variables_of

# A group's own members, whose uses have no name of the API, and launch lines, which stand in comments and strings.
_ELSEWHERE = re.compile(
    r"\.(size|rank|ranks|nranks|world_size|get_group_rank|get_global_rank|name|id|process_group|is_member)\b"
    r"|torchrun|launch|msrun|mpirun|fleetrun"
)
_SIMPLE = (ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert)
_IMPORT = re.compile(r"\s*(import|from) ")
_MARK = re.compile(r"^>+ ?", re.MULTILINE)  # of a tool that marks the lines that it does not convert
# Arguments of which a lost one changes what the call does.
_ARGUMENTS = ("async_op", "sync_op", "group", "tag", "timeout", "device", "group_src", "group_dst", "src", "dst", "op")


@dataclass
class Counts:
    """Of one file, or of many added up. ``unreported`` and ``outside`` name places, by line, that should not be."""

    files: int = 0
    lines: int = 0
    sites: int = 0
    ported: int = 0
    reported: int = 0
    unparsed: int = 0
    comments: int = 0
    arguments: int = 0
    unreported: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Add the counts of *other*."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def measure(name: str, before: str, after: str, framework: str, told: Sequence[int] | None) -> Counts | None:
    """Return what became of the text *before*; None where it uses nothing of *framework*'s API, or is no Python of today.

    *told* are the lines with an entry of the report; None where the tool makes no report of lines.
    """
    try:
        sites = sites_of(ast.parse(before), framework)
    except (SyntaxError, ValueError):
        return None
    if not sites:
        return None
    counts = Counts(files=1, lines=before.count("\n"), sites=len(sites))
    try:
        left = Counter(site.name for site in sites_of(ast.parse(after), framework))
    except (SyntaxError, ValueError):
        counts.unparsed = 1
        after = _MARK.sub("", after)
        try:
            left = Counter(site.name for site in sites_of(ast.parse(after), framework))
        except (SyntaxError, ValueError):
            return counts
    counts.ported = len(sites) - left.total()
    counts.comments = sum(
        number
        for comment, number in (comments_of(before) - comments_of(after)).items()
        if not _ELSEWHERE.search(comment)
    )
    counts.arguments = _arguments_lost(sites, after)
    if told is not None:
        reported = Counter(site.name for site in sites if any(site.first <= line <= site.last for line in told))
        counts.reported = reported.total()
        counts.unreported = [f"{name}: {each}" for each in (left - reported).elements()]
        variables = variables_of(ast.parse(before), framework)
        counts.outside = [f"{name}:{line}" for line in _changed_outside(before, after, sites, variables)]
    return counts


def _changed_outside(before: str, after: str, sites: Sequence[Site], variables: set[str]) -> Iterator[int]:
    """Give the changed lines in which nothing of the API stands."""
    old, new = before.split("\n"), after.split("\n")
    nodes = [*ast.walk(ast.parse(before))]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    of_variables = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in variables]
    sites = [*sites, *(Site("", call.lineno, call.end_lineno or call.lineno) for call in of_variables)]
    of_api = {line for site in sites for line in range(site.first, site.last + 1)}
    for node in nodes:  # of a statement on several lines all count
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1) if isinstance(node, _SIMPLE) else ()
        if any(_ELSEWHERE.search(old[line - 1]) for line in lines):
            of_api.update(lines)
    for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind in ("replace", "delete"):
            for index in range(first, last):
                if index + 1 not in of_api and not _ELSEWHERE.search(old[index]):
                    yield index + 1
        elif kind == "insert" and not of_api.intersection((first, first + 1, first + 2)):
            added = [line for line in new[start:end] if line.strip()]
            is_function = bool(added) and added[0].startswith("def ")  # in place of a primitive's object
            yield from () if is_function or all(_IMPORT.match(line) for line in added) else (first + 1,)


def _arguments_lost(sites: Sequence[Site], after: str) -> int:
    """Return how many keywords fewer the text has than the calls of the API had: a flag may be called the other's name."""
    same = {"async_op": "sync_op", "group_src": "src", "group_dst": "dst"}
    wanted = Counter(same.get(word, word) for site in sites for word in site.keywords if word in _ARGUMENTS)
    calls = (node for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Call))
    found = Counter(same.get(word.arg, word.arg) for call in calls for word in call.keywords if word.arg)
    return sum((wanted - found).values())
