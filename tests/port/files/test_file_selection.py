"""Which files a path means."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from shim.port.files.selection import select_files

SOURCES = {
    "a.py": "python", "types.pyi": "python", "b.ipynb": "notebook", "run.sh": "text", "README.md": "text", "Dockerfile": "text",
    "Dockerfile.gpu": "text", "Makefile": "text", "ci.yml": "text", "k8s.yaml": "text", "docs/index.rst": "text", "notes.txt": "text",
    "pkg/deep/c.py": "python", ".hidden.py": "python",
}  # fmt: skip
OTHERS = [
    "data.bin", "image.png", "module.c", "Dockerfiles", "noend", ".git/x.py", ".tox/x.py", "__pycache__/x.py", "build/x.py",
    "node_modules/x.py", "venv/pyvenv.cfg", "venv/lib/x.py", "conda/conda-meta/h", "conda/x.py",
]  # fmt: skip


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x = 1\n")


def chosen(*paths: Path, below: Path) -> dict[str, str]:
    return {os.path.relpath(file.path, below): file.kind for file in select_files(paths)}


@pytest.fixture(params=["walked", pytest.param("asked of git", marks=pytest.mark.programs("git"))])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "asked of git":
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def test_a_folder_means_its_sources(folder: Path) -> None:
    make(folder, *SOURCES, *(name for name in OTHERS if not name.startswith(".git/")))
    assert chosen(folder, below=folder) == SOURCES


def test_what_is_passed_over_counts_when_it_is_named_itself(folder: Path) -> None:
    make(folder, *OTHERS[5:])
    assert chosen(folder / "venv", folder / "build", below=folder) == {
        "build/x.py": "python",
        "venv/lib/x.py": "python",
    }


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("tool", "#!/usr/bin/env python3\nx = 1\n", "python"),
        ("tool", "#!/bin/sh\n", "text"),
        ("tool.pyw", "x = 1\n", "python"),
        ("data.bin", "", "text"),
    ],
)
def test_a_file_that_is_named_counts_whatever_its_name(tmp_path: Path, name: str, content: str, kind: str) -> None:
    (tmp_path / name).write_text(content)
    assert chosen(tmp_path / name, below=tmp_path) == {name: kind}


@pytest.mark.programs("git")
def test_what_git_ignores_is_passed_over(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make(tmp_path, "kept.py", "ignored.py", "out/x.py", "sub/kept.py")
    (tmp_path / ".gitignore").write_text("ignored.py\nout\n")
    assert set(chosen(tmp_path, below=tmp_path)) == {"kept.py", "sub/kept.py"}
    assert set(chosen(tmp_path / "sub", below=tmp_path)) == {"sub/kept.py"}
    assert set(chosen(tmp_path / "out", tmp_path / "ignored.py", below=tmp_path)) == {"out/x.py", "ignored.py"}


@pytest.mark.programs("git")
def test_a_repository_within_a_repository_is_searched(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "inner"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    make(tmp_path, "inner/x.py", "y.py")
    assert set(chosen(tmp_path, below=tmp_path)) == {"inner/x.py", "y.py"}


@pytest.mark.programs("git")
def test_a_file_that_is_gone_from_the_folder_is_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "gone.py", "kept.py")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    (tmp_path / "gone.py").unlink()
    assert set(chosen(tmp_path, below=tmp_path)) == {"kept.py"}


def test_a_file_counts_once_however_often_it_is_named(folder: Path) -> None:
    make(folder, "real.py")
    (folder / "link.py").symlink_to("real.py")
    (folder / "a_circle").symlink_to(folder)
    [file] = select_files([folder / "link.py", folder, folder / "real.py", folder])
    assert (file.path, file.target) == (folder / "real.py", folder / "real.py")


def test_what_is_no_file_is_passed_over_in_folders(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    (folder / "nowhere.py").symlink_to("nothing")
    assert select_files([folder]) == []


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        select_files([tmp_path / "nothing.py"])
