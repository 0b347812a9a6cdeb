"""The matrix as files: one HTML page that needs nothing besides itself, JUnit's XML, the form that build servers read, and Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from string import Template
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from shim.conformance.examples.judging import Verdict
from shim.conformance.matrix.as_json import as_json
from shim.conformance.matrix.cells import Cell, Column, Matrix, Row


def as_html(matrix: Matrix) -> str:
    """Return the page: ``page/page.html`` with the styles, the program and the matrix put in."""
    page = Template(_part("page.html"))
    return page.substitute(styles=_part("page.css"), program=_program(), data=_embedded(as_json(matrix)))


def _program() -> str:
    return "\n".join(_part(name) for name in ("build.js", "table.js", "panel.js", "page.js"))


def _part(name: str) -> str:
    return (resources.files("shim.conformance.matrix") / "page" / name).read_text(encoding="utf-8")


def _embedded(data: object) -> str:
    """Return *data* as JSON in which nothing can end a script element or begin a comment in it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_UNRUNNABLE = (Verdict.NOT_RUNNABLE, Verdict.NOT_APPLICABLE, Verdict.UNSUPPORTED)
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML has not


def as_junit(matrix: Matrix) -> str:
    """Return *matrix* as a document of JUnit's XML.

    ``fail`` and changed verdicts are failures; examples on record that were not run are errors; what cannot run here is
    skipped; all other verdicts are passed tests with their verdict and reason as properties.
    """
    root = Element("testsuites", name="shim conformance", time=f"{matrix.seconds:.3f}")
    suites: dict[str, Element] = {}
    for row, column, cell in matrix.cells():
        _add_test(_suite(root, suites, f"{row.framework}, {column.key}"), row, cell)
    for subject in matrix.subjects:
        for name in subject.unseen:
            suite = _suite(root, suites, f"{subject.framework}, not run")
            test = SubElement(suite, "testcase", classname=_function(name), name=name)
            SubElement(test, "error", message=f"is on record for {subject.on} and was not run")
    for element in root.findall("testsuite"):
        _count(element)
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: Element, suites: dict[str, Element], name: str) -> Element:
    if name not in suites:
        suites[name] = SubElement(root, "testsuite", name=name)
    return suites[name]


def _add_test(suite: Element, row: Row, cell: Cell) -> None:
    test = SubElement(suite, "testcase", classname=_function(row.name), name=row.name, time=f"{cell.seconds:.3f}")
    properties = SubElement(test, "properties")
    for name, value in (("verdict", cell.verdict.value), ("reason", cell.reason), ("ranks", str(row.ranks))):
        if value:
            SubElement(properties, "property", name=name, value=_clean(value))
    if cell.verdict is Verdict.FAIL or cell.change is not None:
        message = cell.change or (cell.failures[0].summary if cell.failures else cell.reason)
        failure = SubElement(test, "failure", message=_clean(message), type=cell.verdict.value)
        failure.text = _clean("\n\n".join(f"{each.summary}\n{each.text}" for each in cell.failures))
    elif cell.verdict in _UNRUNNABLE:
        SubElement(test, "skipped", message=_clean(f"{cell.verdict.value}: {cell.reason}"))


def _count(suite: Element) -> None:
    suite.set("tests", str(len(suite)))
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(plural, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("time", f"{sum(float(test.get('time', 0)) for test in suite):.3f}")


def _function(name: str) -> str:
    return name.partition("#")[0].partition(":")[0]


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


_WELL = (Verdict.PASS, Verdict.RAN)


def as_markdown(matrix: Matrix) -> str:
    """Return *matrix* as a page of Markdown, as build servers show it."""
    lines = ["# Documented examples, executed", "", "Passed." if matrix.passed else "**Not passed.**", ""]
    lines += _counts(matrix)
    lines += _remarks(matrix)
    lines += ["## Every example", ""]
    columns = matrix.columns
    lines += _table(["example", "ranks", *(column.title for column in columns)], _rows(matrix, columns))
    return "\n".join(lines) + "\n"


def _counts(matrix: Matrix) -> list[str]:
    verdicts = [verdict for verdict in Verdict if any(subject.counts.get(verdict) for subject in matrix.subjects)]
    rows = [
        [
            _plain(each.title),
            each.on,
            each.found,
            each.run,
            *(each.counts.get(v, 0) for v in verdicts),
        ]
        for each in matrix.subjects
    ]
    heads = ["framework", "on", "examples", "run", *(verdict.value for verdict in verdicts)]
    unseen = [f"- {_code(name)}: on record and not run" for subject in matrix.subjects for name in subject.unseen]
    absent = [f"- {name}: not installed{', and asked for' * (name in matrix.missing)}" for name in matrix.absent]
    return [*_table(heads, rows), *unseen, *absent, *([""] if unseen or absent else [])]


def _remarks(matrix: Matrix) -> Iterator[str]:
    by_verdict: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict if verdict not in _WELL}
    changes = []
    for row, column, cell in matrix.cells():
        place = f"{_code(row.name)} ({column.title})"
        if cell.verdict not in (*_WELL, Verdict.NOT_APPLICABLE):
            text = cell.reason or "; ".join(failure.summary for failure in cell.failures)
            by_verdict[cell.verdict].append(f"- {place}: {_plain(text)}")
        if cell.change is not None:
            changes.append(f"- {place}: {_plain(cell.change)}")
    for (kind, reason), count in matrix.inapplicable.items():
        by_verdict[Verdict.NOT_APPLICABLE].append(f"- {count} with {kind} tensors: {_plain(reason)}")
    for verdict, lines in by_verdict.items():
        if lines:
            yield from (f"## {verdict.value.capitalize()}", "", *lines, "")
    if changes:
        yield from ("## Not as recorded", "", *changes, "")


def _rows(matrix: Matrix, columns: Sequence[Column]) -> Iterator[list[object]]:
    for row in matrix.rows:
        yield [_code(row.name), row.ranks, *(_verdict(row, column) for column in columns)]


def _verdict(row: Row, column: Column) -> str:
    return row.cells[column].verdict.value if column in row.cells else ""


def _table(heads: Sequence[str], rows: Iterator[list[object]] | list[list[object]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return [*lines, ""]


def _code(name: str) -> str:
    return f"`{name}`"


def _plain(text: object) -> str:
    """Return *text* on one line and without meaning to Markdown."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", " ".join(str(text).split()))
