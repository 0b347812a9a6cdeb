"""The sources of a suite: fetched once, and copied with its replacements for each way of running it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from campaigns.suites.suite import Suite


def fetch(suite: Suite, cache: Path, python: Path) -> Path:
    """Return the folder of the sources of *suite* in *cache*, fetched if it is not there. Raises CalledProcessError."""
    folder = cache / f"{suite.name}-{suite.revision or suite.version}"
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        archive = (_from_git if suite.repository else _from_index)(suite, partial, python)
        with tarfile.open(archive) as packed:
            packed.extractall(partial, filter="data")
        archive.unlink()
        partial.rename(folder)
    return folder


def copy(suite: Suite, sources: Path, folder: Path, replaced: Iterable[tuple[str, str]]) -> None:
    """Copy what the tests of *suite* need from *sources* to *folder*, with the patterns of *replaced* in it replaced."""
    patterns = [(re.compile(pattern), by) for pattern, by in replaced]
    for path in suite.paths:
        shutil.copytree(sources / path, folder / path, symlinks=True)
    for file in folder.rglob("*.py"):
        text = before = file.read_text(encoding="utf-8")
        for pattern, by in patterns:
            text = pattern.sub(by, text)
        if text != before:
            file.write_text(text, encoding="utf-8")


def _from_git(suite: Suite, folder: Path, _python: Path) -> Path:
    git = ("git", "-C", str(folder / "git"))
    _checked("git", "init", "--quiet", "--bare", str(folder / "git"))
    _checked(*git, "fetch", "--quiet", "--depth", "1", f"https://github.com/{suite.repository}", suite.revision)
    archive = folder / "sources.tar"
    _checked(*git, "archive", "--output", str(archive), "FETCH_HEAD", *suite.paths)
    shutil.rmtree(folder / "git")
    return archive


def _from_index(suite: Suite, folder: Path, python: Path) -> Path:
    wanted = f"{suite.library}=={suite.version}"
    options = ("--quiet", "--no-deps", "--no-binary", suite.library, "--dest", str(folder))
    _checked(str(python), "-m", "pip", "download", *options, wanted)
    archive = next(folder.glob("*.tar.gz"))
    top = archive.name.removesuffix(".tar.gz")
    flat = folder / "sources.tar"
    with tarfile.open(archive) as packed, tarfile.open(flat, "w") as written:
        for member in packed.getmembers():
            if member.isfile() and member.name.startswith(tuple(f"{top}/{path}/" for path in suite.paths)):
                content = packed.extractfile(member)
                member.name = member.name.removeprefix(f"{top}/")
                written.addfile(member, content)
    archive.unlink()
    return flat


def _checked(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
