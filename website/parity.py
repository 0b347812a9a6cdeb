"""The parity record: what each function is in each recorded release of its framework, and how its documented examples end there and here.

``parity.json`` has it as data, the pages in ``parity/`` to read. Both are made of ``shim/record/``, of the verdicts on record
(``shim/conformance/examples/recorded/``), of the reports in ``docs/upstream/``, of the other libraries in ``website/columns/`` and of
``docs/support.json``, whenever the site is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from shim.record import FRONTENDS, Record, Signatures, read, recorded_versions
from shim.record.changes import changes_between
from shim.record.releases import releases_of
from website.badges import PASSES, badges
from website.reports import Report, read_reports

_ROOT = Path(__file__).resolve().parents[1]
_VERDICTS = _ROOT / "shim" / "conformance" / "examples" / "recorded"
_COLUMNS = _ROOT / "website" / "columns"
_SCHEMA = 1  # goes up when a key changes its meaning or goes
_INDEX = """\
# Parity by release

What every function of the frameworks' communication APIs is in each release, and what becomes of its documented
examples: on the framework itself, on one machine without accelerators, and here. Each page lists a module's functions
with their history. [Examples](examples.md) has the verdicts side by side, and [reports](../upstream/index.md) what the
frameworks do otherwise than they document. [parity.json](../parity.json) has all of it as data.

<div id="parity-search" data-rows="../parity.json"></div>

| release | functions, classes and constants | since the release before: silent | loud | compatible | examples passed by itself | here |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""
_AFTER = """
*Silent* changes let calls that worked go on and mean something else; *loud* ones make them raise. Of a release without
numbers in the last columns, only signatures are recorded.

## Badges

`badges/torch.svg`, `badges/paddle.svg` and `badges/mindspore.svg` on this site are pictures for a README, and the
`.json` files beside them are [endpoints for shields.io](https://shields.io/badges/endpoint-badge): how many documented
examples of the newest tried release go as documented here, of those that are right and need no other hardware.

<img src="../badges/torch.svg" alt="torch"> <img src="../badges/paddle.svg" alt="paddle">
<img src="../badges/mindspore.svg" alt="mindspore">

## Add another library

A file in `website/columns/` says how a library is imported in a framework's place. `python -m campaigns.columns NAME`
runs the framework's documented examples on it and writes their verdicts there; [Examples](examples.md) gets a column.
The library needs the framework's own functions: mpi4py, with others, cannot be one.

## The data

`parity.json` has `schema` (this is 1: keys may be added to it, none changes its meaning), `releases` (by framework,
the oldest first) and `names`. Each of these has its `name`; `history`: the releases in which its signature changed,
each with the `signature`, `null` where it was not there; `shim`: its `state` here (as in [support.md](../support.md))
and how it `differs`; `examples`: by release and example, the `verdict` and `reason` on the `framework` itself, on
`shim` and in the `columns` of other libraries; `reports`: the `name` and `title` of each report about it, the
`release`, and the thread `upstream`, empty where none was found.
"""
_EXAMPLES = """\
# Documented examples side by side

How each example in the frameworks' documentation ends: on the framework itself, on one machine without accelerators, with
gloo or MindSpore's own backend for CPUs; here; and on other libraries. A link leads to the function, with the reasons.
[Run documented examples](../conformance.md) explains the verdicts. A report may be known upstream, or new and ready to
be sent.
"""


@cache
def data() -> dict[str, Any]:
    """Return what ``parity.json`` has."""
    names = [_entry(frontend, *place) for frontend in FRONTENDS for place in _places(frontend)]
    releases: dict[str, list[str]] = {}
    for name in recorded_versions():
        releases.setdefault(name.partition("-")[0], []).append(name)
    return {"schema": _SCHEMA, "releases": releases, "names": names}


def files() -> dict[str, str]:
    """Return the text of each file beside the pages by its path: the data, and the badges."""
    newest = {frontend: _newest(_examples(frontend)) for frontend in FRONTENDS}
    return {"parity.json": json.dumps(data(), ensure_ascii=False)} | badges(newest)


def _newest(rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return [row for row in rows if row["release"] == rows[-1]["release"]]


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its name."""
    entries: dict[str, list[dict[str, Any]]] = {}
    for entry in data()["names"]:
        entries.setdefault(_module(entry), []).append(entry)
    texts = {f"parity/{module}.md": _page(module, found) for module, found in entries.items()}
    rows = "\n".join(_row(frontend, release) for frontend in FRONTENDS for release in releases_of(frontend))
    links = "\n".join(f"- [`{module}`]({module}.md)" for module in sorted(entries))
    texts["parity/index.md"] = f"{_INDEX}{rows}\n\n## Modules\n\n{links}\n{_AFTER}"
    texts["parity/examples.md"] = _EXAMPLES + "\n".join(_matrix(entries))
    return texts


def _matrix(entries: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Give the lines of a section for each release whose examples were run, with a table of each module's."""
    found = [(module, entry, row) for module in entries for entry in entries[module] for row in entry["examples"]]
    for release in dict.fromkeys(row["release"] for _, _, row in found):
        framework, _, version = release.partition("-")
        titles = [column["title"] for column in _columns() if column["release"] == release]
        yield f"\n## {framework} {version}"
        for module in dict.fromkeys(module for module, _, row in found if row["release"] == release):
            yield f"\n### {module}\n"
            yield f"| example | {' | '.join([f'{framework} itself', 'here', *titles, 'report'])} |"
            yield "| --- " * (len(titles) + 4) + "|"
            for place, entry, row in found:
                if (place, row["release"]) == (module, release):
                    told = [row["framework"], row["shim"], *(row["columns"].get(title, {}) for title in titles)]
                    name = row["example"].removeprefix(f"{entry['module']}.")
                    cells = [f"[`{name}`]({module}.md#{name.partition(',')[0].lower()})", *map(_mark, told)]
                    yield f"| {' | '.join([*cells, ', '.join(map(_link, entry['reports']))])} |"


def _mark(told: Mapping[str, str]) -> str:
    verdict = told.get("verdict", "not run")
    return verdict if verdict in PASSES else f"**{verdict}**"


def _link(report: Mapping[str, str]) -> str:
    return f"[{'known' if report['upstream'] else 'new'}](../upstream/{report['name']}.md)"


def _places(frontend: str) -> Iterator[tuple[str, str]]:
    """Give the module and the name of all that any release of the *frontend*'s framework has."""
    found: dict[tuple[str, str], None] = {}
    for release in releases_of(frontend):
        for module, records in read(release).modules.items():
            found |= {(module, name): None for name in records if not name.startswith("_")}
    return iter(sorted(found))


def _entry(frontend: str, module: str, name: str) -> dict[str, Any]:
    support = _support().get((frontend + module[module.find(".") :], name), {})
    return {
        "name": f"{module}.{name}",
        "module": module,
        "frontend": frontend,
        "history": list(_history(frontend, module, name)),
        "shim": {key: support[key] for key in ("state", "differs", "why") if key in support},
        "examples": [row for row in _examples(frontend) if row["of"] == f"{module}.{name}"],
        "reports": [
            {"name": report.name, "title": report.title, "release": report.release, "upstream": report.upstream}
            for report in _reports()
            if f"{module}.{name}" in report.functions and report.release in releases_of(frontend)
        ],
    }


def _history(frontend: str, module: str, name: str) -> Iterator[dict[str, Any]]:
    before: Record | None = None
    for release in releases_of(frontend):
        record = read(release).modules.get(module, {}).get(name)
        if record != before or release == releases_of(frontend)[0]:
            yield {"release": release, "signature": record}
        before = record


@cache
def _support() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    rows = json.loads((_ROOT / "docs" / "support.json").read_text(encoding="utf-8"))["names"]
    return {(row["module"], row["name"]): row for row in rows}


@cache
def _reports() -> Sequence[Report]:
    return read_reports()


@cache
def _columns() -> Sequence[Mapping[str, Any]]:
    """Return the columns of other libraries whose examples have been run."""
    columns = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(_COLUMNS.glob("*.json"))]
    return [column for column in columns if "verdicts" in column]


@cache
def _examples(frontend: str) -> Sequence[dict[str, Any]]:
    """Return the verdicts on record of the documented examples, in the releases that the *frontend* follows."""
    found = []
    for release in releases_of(frontend):
        file = _VERDICTS / f"{release}.json"
        rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        for example, row in rows.items():
            framework = {key: row["reference"][key] for key in ("verdict", "reason") if key in row.get("reference", {})}
            ours = {key: row[key] for key in ("verdict", "reason") if key in row}
            others = {
                column["title"]: column["verdicts"][example]
                for column in _columns()
                if column["release"] == release and example in column["verdicts"]
            }
            found.append(
                {"of": example.partition(",")[0], "example": example, "release": release}
                | {"framework": framework, "shim": ours, "columns": others}
            )
    return found


def _row(frontend: str, release: str) -> str:
    known = releases_of(frontend)
    names = sum(len(records) for records in read(release).modules.values())
    changes: Sequence[Any] = [""] * 3
    if release != known[0]:
        found = changes_between(read(known[known.index(release) - 1]), read(release))
        changes = [sum(change.breaks == breaks for change in found) for breaks in ("silent", "loud", "compatible")]
    examples = [row for row in _examples(frontend) if row["release"] == release]
    passed = [""] * 2
    if examples:
        counts = [sum(row[side].get("verdict") in PASSES for row in examples) for side in ("framework", "shim")]
        passed = [f"{count} of {len(examples)}" for count in counts]
    shown = release.replace("-", "&nbsp;")
    return f"| {' | '.join(map(str, (shown, names, *changes, *passed)))} |"


def _module(entry: Mapping[str, Any]) -> str:
    """Return the path of the frontend's module below ``shim.frontends``: in it, Paddle's two major versions are apart."""
    return str(entry["frontend"] + entry["module"][entry["module"].find(".") :]).removeprefix("shim.frontends.")


def _page(module: str, entries: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"# {module} by release"]
    for entry in entries:
        lines += ["", f"## {entry['name'].rpartition('.')[2]}", ""]
        lines += _shown(entry)
        shim = entry["shim"]
        if shim:
            told = shim.get("differs") or shim.get("why") or ""
            lines += ["", f"Here: {shim['state']}{': ' * bool(told)}{told}"]
        for row in entry["examples"]:
            told = {"on the framework itself": row["framework"], "here": row["shim"], **row["columns"]}
            ends = "; ".join(f"{where} {_told(verdict) if verdict else 'not run'}" for where, verdict in told.items())
            lines += ["", f"Example in {row['release'].replace('-', ' ')}: {ends}."]
        for report in entry["reports"]:
            known = f", [reported]({report['upstream']})" if report["upstream"] else ""
            lines += ["", f"Report: [{report['title']}](../upstream/{report['name']}.md){known}."]
    return "\n".join(lines) + "\n"


def _shown(entry: Mapping[str, Any]) -> Iterator[str]:
    """Give a line for each release in which the signature changed: with the signature, and what changed, by what it breaks."""
    before: Signatures | None = None
    for at in entry["history"]:
        record = at["signature"]
        now = None if record is None else Signatures("", "", {}, {"": {"": record}})
        told = "not there" if record is None else "a class" if isinstance(record, Mapping) else f"`{record}`"
        if before is not None and now is not None:
            told = (
                "".join(
                    f"{each.name.strip('.')} {each.what} ({each.breaks}); ".lstrip()
                    for each in changes_between(before, now)
                )
                + told
            )
        yield f"- {at['release'].replace('-', ' ')}: {told}"
        before = now


def _told(verdict: Mapping[str, str]) -> str:
    return verdict["verdict"] + (f" ({verdict['reason']})" if verdict.get("reason") else "")
