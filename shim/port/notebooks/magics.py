"""What IPython adds to Python: lines and cells that are no Python, and how they pass through a port."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shim.port.files.text import is_python

_LINE = re.compile(r"(?P<indent>[ \t]*)(?:[%!?]|[\w.]+\?{1,2}[ \t]*$|[\w., \t*]+=[ \t]*[%!](?!=))")
_COMMAND = re.compile(r"^[ \t]*(?:[\w., \t*]+=[ \t]*)?!(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_MARK = "shim port keeps line"
_RESTORED = re.compile(rf"(?:pass  )?# {_MARK} (\d+)(?=\n|$)")
_CELL = re.compile(r"\s*%%([\w!]+)")
# Cell magics whose cells are Python that runs here, or on ranks. The cells of all others are something else: a shell's, a file's, HTML ...
_PYTHON = ("time", "timeit", "capture", "prun", "memit", "mprun", "ranks", "snakeviz")
_SHELLS = ("bash", "sh", "zsh", "script", "shell", "system", "sx", "!")


@dataclass(frozen=True)
class PlainCell:
    """A cell as Python: ``lines`` are those that ``restored`` puts back."""

    source: str
    lines: tuple[str, ...] = ()


def cell_magic(source: str) -> str:
    """Return the name of the magic that takes the whole cell and makes it something else than Python, "" where there is none."""
    found = _CELL.match(source)
    return found[1] if found and found[1] not in _PYTHON else ""


def is_shell(magic: str) -> bool:
    """Whether the cells of *magic* are commands of a shell."""
    return magic in _SHELLS


def shell_commands(source: str) -> list[tuple[int, int]]:
    """Return where the commands of a shell begin and end in the cell with *source*: lines with an exclamation mark."""
    return [] if is_python(source) else [found.span() for found in _COMMAND.finditer(source)]


def plain_cell(source: str) -> PlainCell | None:
    """Return the cell with *source*, its magics replaced by lines that do nothing; None where what remains is no Python."""
    if is_python(source):
        return PlainCell(source)
    plain: list[str] = []
    kept: list[str] = []
    is_continued = False
    for line in source.split("\n"):
        match = _LINE.match(line)
        if not is_continued and match is None:
            plain.append(line)
            continue
        mark = f"# {_MARK} {len(kept)}"
        plain.append(mark if is_continued or match is None else f"{match['indent']}pass  {mark}")
        kept.append(line)
        is_continued = line.endswith("\\")
    source = "\n".join(plain)
    return PlainCell(source, tuple(kept)) if kept and is_python(source) else None


def restored(source: str, cell: PlainCell) -> str | None:
    """Return *source*, a port of *cell*, with the magics again; None where not every one can be put back."""
    seen: list[int] = []

    def original(match: re.Match[str]) -> str:
        seen.append(int(match[1]))
        line = cell.lines[seen[-1]]
        return line.lstrip(" \t") if match[0].startswith("pass") else line

    text = _RESTORED.sub(original, source) if cell.lines else source
    return text if seen == list(range(len(cell.lines))) else None
