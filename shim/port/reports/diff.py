"""A file's change as a unified diff, which ``git apply`` and ``patch`` read."""

from __future__ import annotations

import difflib
import os

from shim.port.reports.wording import relative
from shim.port.results import FileResult

_NO_END = b"\n\\ No newline at end of file\n"


def diff_of(file: FileResult) -> bytes:
    """Return the change of *file*, in the bytes of the file; nothing where it does not change."""
    name = os.fsencode(relative(file.path))
    names = (b"a/" + name, b"b/" + name) if not name.startswith(b"/") else (name, name)
    if file.is_new:
        names = (b"/dev/null", names[1])
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(file.before), _lines(file.after), *names)
    return b"".join(line if line.endswith(b"\n") else line + _NO_END for line in lines)


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])
