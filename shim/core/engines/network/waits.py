"""What the processes of all hosts say of their waits, as they do on one host to whoever asks there: who waits in a circle."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from shim._native import ask_process
from shim.core.reports.inquiries import ProcessFacts, groups_in
from shim.core.reports.waits import circles_of_waits, told_circle

if TYPE_CHECKING:
    from shim.core.control import Control

_TOPIC = "waits"
_FOR_ITSELF = 0.4  # seconds for this process's own thread to say where its program is
_FOR_ALL = 0.4  # seconds: those that are known not to answer are not asked


def said_at(address: str) -> str:
    """Return what the process that answers at *address*, this one, says of its groups and of where its program is, as JSON."""
    facts, place = ask_process(address, _FOR_ITSELF)
    return json.dumps([facts.decode(errors="replace"), None if place is None else place.decode(errors="replace")])


def answer_for(control: Control, address: str) -> None:
    """Have this process, which answers at *address* on its host, answer the ranks of all hosts."""
    control.answer(_TOPIC, lambda _rank, _question: said_at(address).encode())


def longest_wait(said: str) -> str:
    """Return the wait that takes longest in what a process has said: "has waited 3.0 s: ... (of group 'pairs')"; else where its program is."""
    process = _facts(said, 0)
    waits = [group for group in process.groups if group.waiting is not None and group.waits]
    if waits:
        longest = min(waits, key=lambda group: group.waiting.since if group.waiting else 0)
        return f"{longest.waits} (of group '{longest.name}')"
    if process.place is None:
        return "is in code that keeps the interpreter to itself"
    return f"is at {process.place}" if process.place else "is in no line of its program"


def circle_told(control: Control, address: str, silent: Collection[int]) -> str:
    """Tell of ranks of the job that wait for each other in a circle, in whatever groups; nothing where there is none. The *silent* ones do not answer."""
    first = _ask_all(control, address, silent)
    if not circles_of_waits(first, first):
        return ""
    circles = circles_of_waits(first, _ask_all(control, address, silent))
    return told_circle(circles[0]) if circles else ""


def _ask_all(control: Control, address: str, silent: Collection[int]) -> list[ProcessFacts]:
    asked = [rank for rank in range(len(control.peers)) if rank not in (control.rank, *silent)]
    said = control.ask(_TOPIC, asked, b"", _FOR_ALL)
    return [
        _facts(said_at(address), control.rank),
        *(_facts(answer.decode(), rank) for rank, answer in said.items()),
    ]


def _facts(said: str, rank: int) -> ProcessFacts:
    """Return what the process of the world's *rank* has *said*, by which it is told apart from others: processes of two hosts may have one number."""
    facts, place = json.loads(said)
    groups = groups_in(facts)
    return ProcessFacts(rank, "", "", groups is not None, place, groups or ())
