"""A file is written as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shim.port.files import writing
from shim.port.files.text import ChangedMeanwhile, replace_content


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.py"
    path.write_bytes(b"before")
    return path


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600])
def test_the_content_changes_and_the_permissions_stay(file: Path, mode: int) -> None:
    file.chmod(mode)
    replace_content(file, b"before", b"after")
    assert file.read_bytes() == b"after"
    assert file.stat().st_mode & 0o777 == mode
    assert os.listdir(file.parent) == ["x.py"]


def test_a_file_that_somebody_else_has_written_stays(file: Path) -> None:
    file.write_bytes(b"somebody else's")
    with pytest.raises(ChangedMeanwhile):
        replace_content(file, b"before", b"after")
    assert file.read_bytes() == b"somebody else's"


@pytest.mark.parametrize("function", ["open", "os.fsync", "shutil.copymode", "os.replace"])
@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt()])
def test_after_a_failure_the_folder_is_as_before(
    file: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException
) -> None:
    def fail(*arguments: object, **settings: object) -> None:
        raise error

    monkeypatch.setattr(f"{writing.__name__}.{function}", fail, raising=False)
    with pytest.raises(type(error)):
        replace_content(file, b"before", b"after")
    monkeypatch.undo()
    assert file.read_bytes() == b"before"
    assert os.listdir(file.parent) == ["x.py"]
