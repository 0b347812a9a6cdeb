"""Port many files, on several processors, and the content of one."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from shim.port.apis import APIS
from shim.port.files.mentions import mentions_api, mentions_launcher
from shim.port.files.reexports import Reexports
from shim.port.files.selection import ChosenFile, Kind, select_files
from shim.port.files.text import NotText, create_file, decode_python, decode_text, replace_content
from shim.port.glue import GLUE_FILE, needs_glue, with_glue
from shim.port.launch_lines.texts import port_launch_lines
from shim.port.notebooks.porting import port_notebook
from shim.port.plan import FileResult, Finding, Plan, Ported, Problem, Result
from shim.port.porting import PortFunction, port_python, port_source
from shim.port.workers import for_each

MOST_BYTES = 1_000_000  # of a file that is parsed; larger ones are generated, and parsing them takes minutes
_NOT_PYTHON = "port it by hand, or make it valid Python 3 first (2to3 rewrites Python 2)"


def can_have_places(content: bytes | mmap.mmap, kind: Kind, plan: Plan) -> bool:
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
    except NotText as error:
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
        done: Ported
        if file.kind == "python":
            done = port_python(decoded.text, _in_its_folder(file, decoded.text, plan), port)
        else:
            done = port_launch_lines(decoded.text, plan)
        text, places = done.text, done.places
        findings = [Finding(entry.line, entry) for entry in done.entries]
    findings = [each for each in findings if each.entry.rule not in plan.ignored]
    after = content if text == decoded.text else decoded.encode(text)
    return FileResult(file.path, file.target, content, after, decoded.encoding, places, tuple(sorted(findings)))


def _in_its_folder(file: ChosenFile, text: str, plan: Plan) -> Plan:
    """Return *plan* with whether *file* is a module of a package; one that can be started as a program is none."""
    in_package = (file.target.parent / "__init__.py").exists() and "__main__" not in text
    return replace(plan, in_package=in_package)


_ALONE = 200_000  # bytes that this process ports sooner than others start


def port_paths(
    paths: Sequence[Path],
    plan: Plan,
    *,
    jobs: int,
    port: PortFunction = port_source,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Return what comes of the files that *paths* mean, ported by *plan* in *jobs* processes. Nothing is written.

    ``port`` ports a module's text; it is sent to other processes, so it is a function at the top of a module. ``progress`` is told the bytes
    that are done and their total. Raises FileNotFoundError for a path that is not there.
    """
    files = select_files(paths)
    found: list[FileResult] = []
    to_port: list[tuple[int, ChosenFile, Plan]] = []
    plans = _plans(files, plan)
    for file in files:
        try:
            if size := _size_to_port(file, plans.get(file.target, plan)):
                to_port.append((size, file, plans.get(file.target, plan)))
        except OSError as error:
            found.append(_unread(file, error))
    to_port.sort(key=lambda each: each[0], reverse=True)  # the largest first: none is begun when all others are done
    total = sum(size for size, *_ in to_port)
    done = 0
    tasks = [(file, own, port) for _, file, own in to_port]
    for number, result in for_each(_port_one, tasks, jobs if total > _ALONE else 1, _crashed):
        found.append(result)
        done += to_port[number][0]
        progress(done, total)
    told = [file for file in with_glue(found, plan) if file.is_changed or file.findings or file.problem or file.places]
    return Result(plan, sorted(told, key=lambda file: file.path), len(files))


def write_files(result: Result) -> Iterator[FileResult]:
    """Write the changed files, and give each; one that cannot be written is given with its problem and stays as it was."""
    without_glue: set[Path] = set()  # folders in which it could not be written
    for file in sorted(result.changed, key=lambda file: file.target.name != GLUE_FILE):
        try:
            if file.target.parent in without_glue and needs_glue(file):
                raise OSError(f"the module {GLUE_FILE} beside it could not be written")
            if file.is_new:
                create_file(file.target, file.after)
            else:
                replace_content(file.target, file.before, file.after)
        except OSError as error:
            if file.target.name == GLUE_FILE:
                without_glue.add(file.target.parent)
            why = f"it could not be written: {error.strerror or error}"
            yield FileResult(
                file.path,
                file.target,
                file.before,
                file.before,
                file.encoding,
                problem=Problem(why, "run the port again when it can"),
            )
        else:
            yield file


def _plans(files: Sequence[ChosenFile], plan: Plan) -> dict[Path, Plan]:
    """Return the plan of each Python file that has names of the API by way of other *files*."""
    api = APIS[plan.source]
    reexports = Reexports(lambda name: api.is_collective(api.canonical(name)))
    modules = [file.target for file in files if file.kind == "python"]
    for path in modules if len(modules) > 1 else ():
        with suppress(OSError):
            if path.is_file() and path.stat().st_size <= MOST_BYTES:
                content = path.read_bytes()
                reexports.add(path, content, mentions_api(content, api.framework))
    reexports.find()
    found = {path: [(name, api.canonical(means)) for name, means in reexports.of(path)] for path in modules}
    return {path: replace(plan, reexports=names) for path, names in found.items() if names}


def _size_to_port(file: ChosenFile, plan: Plan) -> int:
    """Return the bytes of *file*, 0 where it has nothing to port. Raises OSError."""
    if not file.target.is_file():
        if file.target.is_dir():
            os.listdir(file.target)  # it was chosen because this fails
        if file.target.exists():
            raise OSError("it is not a regular file")
        raise FileNotFoundError("it is a link to a file that is not there")
    with file.target.open("rb") as opened:
        size = os.stat(opened.fileno()).st_size
        if size <= MOST_BYTES:
            return max(size, 1) if can_have_places(opened.read(), file.kind, plan) else 0
        # A larger file is not read: it is only to be known whether it is to be reported.
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return MOST_BYTES if can_have_places(content, file.kind, plan) else 0


def _port_one(task: tuple[ChosenFile, Plan, PortFunction]) -> FileResult:
    file, plan, port = task
    try:
        with file.target.open("rb") as opened:
            return port_file(file, opened.read(MOST_BYTES + 1), plan, port)
    except OSError as error:
        return _unread(file, error)


def _unread(file: ChosenFile, error: OSError) -> FileResult:
    why = f"it could not be read: {error.strerror or error}"
    return FileResult(file.path, file.target, problem=Problem(why, "leave it out, or make it readable"))


def _crashed(task: tuple[ChosenFile, Plan, PortFunction]) -> FileResult:
    problem = Problem(
        "the process that ported it died", "port it by hand, and report this as a bug of shim, with the file"
    )
    return FileResult(task[0].path, task[0].target, problem=problem)
