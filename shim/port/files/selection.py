"""Which files the paths of a command line mean, what a port does with each by its name, and what git says of them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# python: code and launch lines; notebook: the same in its cells; text: launch lines alone.
Kind = Literal["python", "notebook", "text"]

_BY_SUFFIX: dict[str, Kind] = {
    ".py": "python",
    ".pyi": "python",
    ".ipynb": "notebook",
    ".sh": "text",
    ".md": "text",
    ".rst": "text",
    ".txt": "text",
    ".yml": "text",
    ".yaml": "text",
}
_TEXTS = re.compile(r"Dockerfile(\..+)?|.+\.[Dd]ockerfile|(GNU)?[Mm]akefile|.+\.mk")
_PYTHON_SCRIPT = re.compile(rb"#![^\n]*\bpython[\d.]*\b")


def kind_by_name(path: Path) -> Kind | None:
    """Return the kind of the file *path* among others of its folder, None where a port passes it over."""
    if path.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[path.suffix]
    return "text" if _TEXTS.fullmatch(path.name) else None


def kind_of(path: Path, content: bytes) -> Kind:
    """Return the kind of a file that the user has named, whatever its name: *content* is its beginning."""
    if (kind := kind_by_name(path)) is not None:
        return kind
    return "python" if path.suffix == ".pyw" or _PYTHON_SCRIPT.match(content) else "text"


_GIT_DEADLINE = 60  # seconds
# A repository's own settings may name programs to be run; listing files must run none of them.
_GIT = ("git", "-c", "core.fsmonitor=false", "--no-optional-locks")
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
        for file, kind in _files_below(path) if _is_folder(path) else [(path, _kind_of_named(path))]:
            target = Path(os.path.realpath(file))
            if target not in found or found[target].path.is_symlink():
                found[target] = ChosenFile(file, target, kind)
    return sorted(found.values(), key=lambda file: file.path)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _kind_of_named(path: Path) -> Kind:
    """Return the kind of the file *path*. One that cannot be read is tried again, and reported. Raises FileNotFoundError."""
    try:
        path.lstat()
        if (kind := kind_by_name(path)) is not None or not path.is_file():
            return kind or "text"
        with path.open("rb") as file:
            return kind_of(path, file.read(_BEGINNING))
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from None
    except FileNotFoundError:
        raise
    except OSError:
        return "text"


def _files_below(folder: Path) -> Iterator[tuple[Path, Kind]]:
    """Give the sources below *folder*, and the folders there that cannot be read, as if they were files: reading them is reported."""
    listed = files_in_repository(folder)
    closed: list[Path] = []
    for file in _walk(folder, closed) if listed is None else _without_passed_over(folder, listed):
        if (kind := kind_by_name(file)) is not None:
            yield file, kind
    yield from ((each, "text") for each in closed)


def _walk(folder: Path, closed: list[Path]) -> Iterator[Path]:
    """Give the regular files below *folder*; folders that are links are not followed, so there is no circle. *closed* gets the unreadable ones."""
    for name, folders, files in os.walk(folder, onerror=lambda error: closed.append(Path(error.filename))):
        folders[:] = sorted(each for each in folders if not _is_passed_over(os.path.join(name, each)))
        yield from (path for each in sorted(files) if _is_file(path := Path(name, each)))


def _is_file(path: Path) -> bool:
    """Whether *path* is a regular file, or one that may not be looked at: reading it is reported."""
    try:
        return path.is_file()
    except OSError:
        return True


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
        if _is_file(path):
            yield path
        elif path.is_dir() and not path.is_symlink() and not is_passed_over(name.rstrip("/")):
            yield from (file for file, _ in _files_below(path))


def _is_passed_over(folder: str | Path) -> bool:
    name = os.path.basename(folder)
    hidden = name.startswith(".")
    return hidden or name in _PASSED_OVER or any(os.path.exists(os.path.join(folder, each)) for each in _ENVIRONMENT)


def files_in_repository(folder: Path) -> list[str] | None:
    """Return the files below *folder*, relative to it, but for those that git ignores.

    None: there is no repository or no git, or *folder* itself is ignored, so that git knows nothing of it.
    """
    listed = _ask_git(folder, "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z")
    if listed is None:
        return None
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    return None if not names and _ask_git(folder, "check-ignore", "--quiet", ".") is not None else names


def _ask_git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints, None where it ends with another status than 0."""
    # The variables of a hook mean another repository.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(folder), *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=own, check=False, timeout=_GIT_DEADLINE
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
