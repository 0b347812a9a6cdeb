"""``docs/real_programs.md``, from what is on record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaigns.real_programs import record
from campaigns.real_programs.listed import LEFT_OUT, PROGRAMS
from campaigns.real_programs.program import Program
from campaigns.real_programs.running import AS_INSTALLED, ENGINE, GLOO

_FILE = Path(__file__).resolve().parents[2] / "docs" / "real_programs.md"
_HEAD = """\
# Real programs

{passing} of {total} programs end on shim's engine with the results that they have on gloo. Each program uses a
library, or a feature of `torch.distributed`, as its users do. It is started on two ranks, three times:

| column | command |
| --- | --- |
| gloo | `torchrun --nproc-per-node 2 PROGRAM` |
| engine | `SHIM_TORCH_BACKEND=1 torchrun --nproc-per-node 2 PROGRAM` |
| as installed | `shim run --as-installed -n 2 PROGRAM` |

A column shows the seconds of the whole run, most of which is importing. *same* means that both ranks show gloo's
results bit for bit; *close*, within 1e-5; –, that it was not started this way. A program counts only if all its process
groups were the engine's. All ran with torch {torch} on a machine of two processors that was busy with other work: the
seconds show that the programs are small, and compare nothing.

`python -m campaigns.real_programs --record` generates this page. The programs are in
`campaigns/real_programs/programs/`.
"""
_SHORT = {"the same bits": "same", "the same within 1e-5": "close"}


def write() -> None:
    """Write the page."""
    _FILE.write_text(text(record.read()), encoding="utf-8")


def text(entries: dict[str, dict[str, Any]]) -> str:
    """Return the page that *entries* make."""
    shown = [(program, entries[program.name]) for program in PROGRAMS if program.name in entries]
    on_gloo = [(program, entry) for program, entry in shown if entry[GLOO]["ending"] == "ok"]
    torch = next((entry["version"] for program, entry in shown if program.library == "torch"), "")
    passing = sum(not record.is_wrong(entry) for _, entry in on_gloo)
    lines = [_HEAD.format(passing=passing, total=len(on_gloo), torch=torch)]
    lines += [
        "| library | program | what it uses | gloo | engine | as installed |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(program, entry) for program, entry in on_gloo]
    lines += ["", *_differences(on_gloo), "## What is left out, or does not run here on gloo", ""]
    lines += ["| library | what | reason |", "| --- | --- | --- |"]
    lines += [
        f"| {program.library} {entry['version']} | {program.uses} | {_cell(entry[GLOO]['ending'])} |"
        for program, entry in shown
        if entry[GLOO]["ending"] != "ok"
    ]
    lines += [f"| {one.library} | {one.uses} | {one.reason} |" for one in LEFT_OUT]
    return "\n".join(lines) + "\n"


def _row(program: Program, entry: dict[str, Any]) -> str:
    columns = [
        f"{program.library} {entry['version']}",
        f"`{program.name}`",
        program.uses,
        f"{entry[GLOO]['seconds']:.1f}",
    ]
    return "| " + " | ".join([*columns, *(_told(entry.get(way)) for way in (ENGINE, AS_INSTALLED))]) + " |"


def _told(way: dict[str, Any] | None) -> str:
    if way is None:
        return "–"
    return f"{_SHORT.get(way['results'], '**differs**')}, {way['seconds']:.1f}"


def _differences(on_gloo: list[tuple[Program, dict[str, Any]]]) -> Iterator[str]:
    """Tell each program that ends otherwise on the engine, and how."""
    wrong = [(program, entry) for program, entry in on_gloo if record.is_wrong(entry)]
    if not wrong:
        return
    yield from ("## What differs", "", "| program | started | result |", "| --- | --- | --- |")
    for program, entry in wrong:
        for way in (ENGINE, AS_INSTALLED):
            one = entry.get(way)
            if one is not None and not one["results"].startswith("the same"):
                told = one["ending"] if one["ending"] != "ok" else one["results"]
                yield f"| `{program.name}` | {way} | {_cell(told)} |"
    yield ""


def _cell(told: str) -> str:
    return told.replace("|", "\\|").replace("<", "&lt;")
