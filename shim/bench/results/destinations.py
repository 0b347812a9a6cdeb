"""Where results go: files and folders that are looked at before anything is measured, and written as a whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def file_refusal(file: Path) -> str | None:
    """Return why *file* cannot be written, or None."""
    if file.is_dir():
        return f"{file} is a folder"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    try:
        if _is_special(file):
            file.open("a").close()
        else:
            _try(file.resolve().parent)
    except OSError as error:
        return f"{file} cannot be written: {error.strerror}"
    return None


def folder_refusal(folder: Path) -> str | None:
    """Return why nothing can be written into *folder*, which is made where there is none, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _try(folder)
    except OSError as error:
        return f"nothing can be written into {folder}: {error.strerror}"
    return None


def write_whole(file: Path, text: str) -> None:
    """Write *text* to *file*: all of it, or nothing where that fails or is interrupted. A link stays one."""
    if _is_special(file):
        file.write_text(text, encoding="utf-8")
        return
    target = file.resolve()
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _try(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass


def _is_special(file: Path) -> bool:
    return file.exists() and not file.is_file()  # such as a pipe
