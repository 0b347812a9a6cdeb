"""Port the content of one file."""

from __future__ import annotations

from dataclasses import replace
from mmap import mmap

from shim.port.apis import APIS
from shim.port.files.mentions import mentions_api, mentions_launcher
from shim.port.files.selection import ChosenFile, Kind
from shim.port.files.text import NotText, decode_python, decode_text
from shim.port.launch_lines.launch import Launched
from shim.port.launch_lines.texts import port_launch_lines
from shim.port.notebooks.notebook import NotANotebook
from shim.port.notebooks.porting import port_notebook
from shim.port.plan import Plan, Ported
from shim.port.porting import PortFunction, port_python
from shim.port.results import FileResult, Finding, Problem

MOST_BYTES = 1_000_000  # of a file that is parsed; larger ones are generated, and parsing them takes minutes
_NOT_PYTHON = "port it by hand, or make it valid Python 3 first (2to3 rewrites Python 2)"


def can_have_places(content: bytes | mmap, kind: Kind, plan: Plan) -> bool:
    """Whether a file with this *content* can have anything to port; most files of a project cannot, and are not parsed."""
    framework = APIS[plan.source].framework
    return (
        bool(plan.reexports)
        or mentions_launcher(content, framework)
        or (kind != "text" and mentions_api(content, framework))
    )


def port_file(file: ChosenFile, content: bytes, plan: Plan, port: PortFunction) -> FileResult:
    """Return *content*, the bytes of *file*, ported. Whatever is wrong with the file is a problem of the result; nothing is raised."""
    try:
        return _port(file, content, plan, port)
    except (NotText, NotANotebook) as error:
        problem = Problem(str(error), error.advice)
    except SyntaxError as error:
        what = f"it is not Python 3, line {error.lineno}" if error.lineno else "it was not understood as Python 3"
        problem = Problem(f"{what}: {error.msg}", _NOT_PYTHON)
    except RecursionError:
        problem = Problem("its expressions are nested too deeply", "split them, or port the file by hand")
    except Exception as error:  # one file must not end the port of all others
        problem = Problem(
            f"the port failed: {type(error).__name__}: {error}", "report this as a bug of shim, with the file"
        )
    return FileResult(file.path, file.target, content, content, problem=problem)


def _port(file: ChosenFile, content: bytes, plan: Plan, port: PortFunction) -> FileResult:
    if len(content) > MOST_BYTES:
        raise NotText(f"it has {len(content):,} bytes, more than {MOST_BYTES:,}", "split the file, or port it by hand")
    decoded = decode_python(content) if file.kind == "python" else decode_text(content)
    if file.kind == "notebook":
        text, places, findings = port_notebook(decoded.text, plan, port)
    else:
        done: Ported | Launched
        if file.kind == "python":
            done = port_python(decoded.text, _in_its_folder(file, decoded.text, plan), port)
        else:
            done = port_launch_lines(decoded.text, plan)
        text, places = done.text, done.places
        findings = [Finding(entry.line, entry) for entry in done.entries]
    after = content if text == decoded.text else decoded.encode(text)
    return FileResult(file.path, file.target, content, after, decoded.encoding, places, tuple(sorted(findings)))


def _in_its_folder(file: ChosenFile, text: str, plan: Plan) -> Plan:
    """Return *plan* with whether *file* is a module of a package; one that can be started as a program is none."""
    in_package = (file.target.parent / "__init__.py").exists() and "__main__" not in text
    return replace(plan, in_package=in_package)
