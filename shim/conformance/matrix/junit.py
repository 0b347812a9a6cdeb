"""The matrix as JUnit's XML, the form that build servers read: a suite for every framework and column, a test for every cell."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from shim.conformance.examples.judging.verdicts import Verdict
from shim.conformance.matrix.cells import Cell, Matrix, Row

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
