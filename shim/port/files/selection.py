"""Which files the paths of a command line mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shim.port.files.git import files_in_repository
from shim.port.files.kinds import Kind, kind_by_name, kind_of

__all__ = ["ChosenFile", "select_files"]

_PASSED_OVER = ("__pycache__", "build", "node_modules")  # folders that hold no sources
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")  # what virtual environments have at their top
_BEGINNING = 256  # bytes, which hold a script's first line


@dataclass(frozen=True)
class ChosenFile:
    """A file to port. ``path`` is as the user would write it, ``target`` the file behind symbolic links."""

    path: Path
    target: Path
    kind: Kind


def select_files(paths: Sequence[Path]) -> list[ChosenFile]:
    """Return the files that *paths* mean, each once, in the order of their paths: a file is itself, a folder the sources below it.

    Raises FileNotFoundError for a path that is not there.
    """
    found: dict[Path, ChosenFile] = {}
    for path in paths:
        for file, kind in _files_below(path) if path.is_dir() else [(path, _kind_of_named(path))]:
            target = Path(os.path.realpath(file))
            if target not in found or found[target].path.is_symlink():
                found[target] = ChosenFile(file, target, kind)
    return sorted(found.values(), key=lambda file: file.path)


def _kind_of_named(path: Path) -> Kind:
    if (kind := kind_by_name(path)) is not None or not path.is_file():
        path.lstat()  # there is such a file, if only a link
        return kind or "text"
    try:
        with path.open("rb") as file:
            return kind_of(path, file.read(_BEGINNING))
    except PermissionError:
        return "text"  # reading it is tried again, and reported


def _files_below(folder: Path) -> Iterator[tuple[Path, Kind]]:
    listed = files_in_repository(folder)
    for file in _walk(folder) if listed is None else _without_passed_over(folder, listed):
        if (kind := kind_by_name(file)) is not None:
            yield file, kind


def _walk(folder: Path) -> Iterator[Path]:
    """Give the regular files below *folder*; folders that are links are not followed, so there is no circle."""
    for name, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not _is_passed_over(os.path.join(name, each)))
        yield from (path for each in sorted(files) if (path := Path(name, each)).is_file())


def _without_passed_over(folder: Path, listed: Iterable[str]) -> Iterator[Path]:
    """Give the files of *listed*, which git names below *folder*. It names a repository within the repository as a folder."""
    verdicts: dict[str, bool] = {"": False}

    def is_passed_over(relative: str) -> bool:
        if relative not in verdicts:
            verdicts[relative] = is_passed_over(os.path.dirname(relative)) or _is_passed_over(folder / relative)
        return verdicts[relative]

    for name in listed:
        path = folder / name
        if is_passed_over(os.path.dirname(name)):
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and not is_passed_over(name.rstrip("/")):
            yield from (file for file, _ in _files_below(path))


def _is_passed_over(folder: str | Path) -> bool:
    name = os.path.basename(folder)
    hidden = name.startswith(".")
    return hidden or name in _PASSED_OVER or any(os.path.exists(os.path.join(folder, each)) for each in _ENVIRONMENT)
