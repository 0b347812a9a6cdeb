"""Which files need the module of glue, and what it holds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from shim.port.glue.functions import GLUE_MODULE, module_text
from shim.port.plan import Plan
from shim.port.results import FileResult, Problem

__all__ = ["GLUE_FILE", "needs_glue", "with_glue"]

GLUE_FILE = f"{GLUE_MODULE}.py"
_IMPORT = re.compile(rf"\bfrom \.?{GLUE_MODULE} import (\w+)".encode())
_DEFINITION = re.compile(r"^def (\w+)", re.MULTILINE)
_HEAD = '"""What {framework} lacks, written by `shim port --to {api}`, which writes it anew: remove this line to keep changes of yours."""\n\n'


def needs_glue(file: FileResult) -> bool:
    """Tell whether *file* imports, after its port, from the module of glue."""
    return file.is_changed and bool(_IMPORT.search(file.after))


def with_glue(files: Sequence[FileResult], plan: Plan) -> list[FileResult]:
    """Return *files* with the modules of glue that they need, one in each folder.

    A module that this command wrote grows. In a folder with another file of its name, the files that need it are not ported.
    """
    if plan.onto != "native":
        return list(files)
    head = _HEAD.format(framework=plan.target.partition("_")[0], api=plan.target.replace("_", "-"))
    found = [file for file in files if file.target.name != GLUE_FILE]
    for folder in dict.fromkeys(file.target.parent for file in files if needs_glue(file)):
        path = folder / GLUE_FILE
        try:
            before = path.read_bytes() if path.exists() or path.is_symlink() else None
        except OSError:
            before = b""
        if before is not None and not before.decode("utf-8", "replace").startswith(head):
            found = [_refused(file) if file.target.parent == folder and needs_glue(file) else file for file in found]
            continue
        users = [file for file in files if file.target.parent == folder and needs_glue(file)]
        names = {name.decode() for file in users for name in _IMPORT.findall(file.after)}
        names |= set(_DEFINITION.findall((before or b"").decode()))
        after = (head + module_text(sorted(names), plan.target)).encode()
        shown = users[0].path.parent / GLUE_FILE
        found.append(FileResult(shown, path, before or b"", after, is_new=before is None))
    return found


def _refused(file: FileResult) -> FileResult:
    why = f"it needs a module {GLUE_FILE} beside it, and the file of that name is not of this port"
    problem = Problem(why, "rename that file, and port again")
    return dataclasses.replace(file, after=file.before, places=0, findings=(), problem=problem)
