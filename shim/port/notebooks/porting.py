"""Port the cells of a notebook."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shim.port.launch_lines.launch import Launched
from shim.port.launch_lines.texts import port_launch_lines
from shim.port.notebooks.magics import PlainCell, cell_magic, is_shell, plain_cell, restored, shell_commands
from shim.port.notebooks.notebook import Cell, NotANotebook, code_cells, line_in_file, with_sources
from shim.port.plan import Entry, Finding, Plan, Ported
from shim.port.porting import PortFunction, port_python

_MARK = "# shim port: cell "
_MARKS = re.compile(rf"^{_MARK}(\d+)\n", re.MULTILINE)
_ADVICE = "port this cell by hand"


@dataclass(frozen=True)
class _CodeCell:
    """A cell of Python: ``launched`` with its shell commands ported, ``plain`` without magics."""

    cell: Cell
    launched: Launched
    plain: PlainCell


class _Notebook:
    """A notebook that is being ported: what has been found so far."""

    def __init__(self, text: str, plan: Plan, port: PortFunction) -> None:
        self.plan = plan
        self.port = port
        self.places = 0
        self.sources: dict[int, str] = {}
        self.findings: list[Finding] = []
        self._text = text

    def report(self, cell: Cell, entry: Entry) -> None:
        self.findings.append(Finding(line_in_file(self._text, cell, entry.line), entry, cell.number))

    def keep(self, cell: Cell, source: str) -> None:
        if source != cell.source:
            self.sources[cell.number] = source


def port_notebook(text: str, plan: Plan, port: PortFunction) -> tuple[str, int, list[Finding]]:
    """Return *text*, the JSON of a notebook, ported by *plan*, the number of ported places, and the findings. Raises NotANotebook."""
    notebook = _Notebook(text, plan, port)
    cells = code_cells(text)
    code = []
    for cell in cells:
        if magic := cell_magic(cell.source):
            _port_other_cell(notebook, cell, magic)
        else:
            code += list(_prepared(notebook, cell))
    _port_code(notebook, code)
    return with_sources(text, notebook.sources, cells), notebook.places, sorted(notebook.findings)


def _port_other_cell(notebook: _Notebook, cell: Cell, magic: str) -> None:
    """Port a cell that is commands of a shell, or the text of a Python file."""
    first, newline, rest = cell.source.partition("\n")
    done: Ported | None = None
    if is_shell(magic):
        done = port_launch_lines(rest, notebook.plan)
    elif magic == "writefile" and re.search(r"\.pyw?['\"]?\s*$", first):
        try:
            done = port_python(rest, notebook.plan, notebook.port)
        except SyntaxError as error:
            line, why = (error.lineno or 1) + 1, f"the file is not Python 3: {error.msg}"
            notebook.report(cell, Entry(line, 1, "left", "cell-not-python", why, _ADVICE))
    if done is not None:
        notebook.keep(cell, first + newline + done.text)
        notebook.places += done.places
        for entry in done.entries:
            notebook.report(cell, replace(entry, line=entry.line + 1))


def _prepared(notebook: _Notebook, cell: Cell) -> Iterator[_CodeCell]:
    """Give *cell* for the module that all cells make; nothing where it is no Python, which is reported if it can be of interest."""
    launched = port_launch_lines(cell.source, notebook.plan, shell_commands(cell.source))
    notebook.keep(cell, launched.text)
    notebook.places += launched.places
    for entry in launched.entries:
        notebook.report(cell, entry)
    plain = plain_cell(launched.text)
    if plain is not None:
        yield _CodeCell(cell, launched, plain)
    elif re.search(r"\bdist\b|distributed|all_reduce|AllReduce|all_gather", cell.source):
        notebook.report(
            cell, Entry(1, 1, "left", "cell-not-python", "the cell is not Python 3, so it was not read", _ADVICE)
        )


def _port_code(notebook: _Notebook, code: list[_CodeCell]) -> None:
    """Port the cells of Python as one module: what one cell imports, the next ones use."""
    module = "".join(f"{_MARK}{each.cell.number}\n{each.plain.source}\n" for each in code)
    if not code:
        return
    ported = port_python(module, notebook.plan, notebook.port)
    sources = _split(ported.text, code)
    for each, source in zip(code, sources, strict=True):
        notebook.keep(each.cell, source)
    notebook.places += ported.places
    starts = [module.count("\n", 0, found.end()) for found in _MARKS.finditer(module)]
    for entry in ported.entries:
        number = max(bisect_right(starts, entry.line - 1) - 1, 0)
        line = max(entry.line - starts[number], 1)
        notebook.report(code[number].cell, replace(entry, line=code[number].launched.line_before(line)))


def _split(text: str, code: list[_CodeCell]) -> list[str]:
    """Return the cells of the ported module *text*. Raises NotANotebook where they cannot be told apart."""
    before, *rest = _MARKS.split(text)
    numbers, sources = [int(number) for number in rest[::2]], rest[1::2]
    cells = [restored(source.removesuffix("\n"), each.plain) for source, each in zip(sources, code, strict=False)]
    if numbers != [each.cell.number for each in code] or None in cells:
        raise NotANotebook(
            "its cells cannot be told apart after the port", "port it by hand, or cell by cell as a Python file"
        )
    return [before + str(cells[0]), *map(str, cells[1:])]
