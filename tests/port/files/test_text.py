"""Bytes become text and bytes again; a file is written as a whole or not at all."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from shim.port.files import text
from shim.port.files.text import ChangedMeanwhile, NotText, decode_python, decode_text, replace_content, split_lines

CODE = "x = 1\ny = 'ä'\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        CODE.encode(),
        codecs.BOM_UTF8 + CODE.encode(),
        b"# -*- coding: latin-1 -*-\n" + CODE.encode("latin-1"),
        b"#!/usr/bin/python\r# coding: cp1252\r" + CODE.replace("\n", "\r").encode("cp1252"),
        "# coding: gbk\ns = '中文'\n".encode("gbk"),
        "# coding: shift_jis\ns = '表'\n".encode("shift_jis"),
        CODE.replace("\n", "\r\n").encode(),
        CODE.replace("\n", "\r").encode(),
        b"a = 1\r\nb = 2\nc = 3\rd = '''x\r\ny\n'''",
        b"a = 1\n\x0c\nclass A:\n\x0c\n    b = 2",
        "s = '\u2028\x85\x1c'\n".encode(),
    ],
)
def test_text_that_stays_gives_the_same_bytes(content: bytes) -> None:
    decoded = decode_python(content)
    assert "\r" not in decoded.text
    assert decoded.encode(decoded.text) == content
    assert decode_text(content).encode(decode_text(content).text) == content


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_new_line_gets_the_end_that_the_file_has(end: str) -> None:
    decoded = decode_python(f"a = 1{end}b = 2{end}".encode())
    assert decoded.encode("import c\na = 1\nb = 3\n") == f"import c{end}a = 1{end}b = 3{end}".encode()


def test_lines_that_stay_keep_their_ends_where_these_differ() -> None:
    decoded = decode_python(b"a\r\nb\nc\r\nd\re")
    assert decoded.encode("a\nnew\nb\nC\nd\ne") == b"a\r\nnew\r\nb\nC\r\nd\re"
    assert decoded.encode("a\nb\nc\nD\ne\n") == b"a\r\nb\nc\r\nD\re\r\n"


def test_a_file_keeps_its_encoding() -> None:
    content = b"# coding: latin-1\ns = '\xe4'\n"
    decoded = decode_python(content)
    assert decoded.encode(decoded.text.replace("s =", "t =")) == b"# coding: latin-1\nt = '\xe4'\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"x = '\xff'\n", "cannot decode"),
        (b"# coding: klingon\n", "unknown encoding"),
        (b"# coding: hex\n", "cannot decode"),
        (b"# coding: rot13\n", "cannot decode"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "cannot decode"),
        (b"\x7fELF\0\0", "zero bytes"),
        ("x = 1\n".encode("utf-16"), "UTF-16"),
        (b"# coding: utf-7\ns = '+AGE-'\n", "same bytes"),
    ],
)
def test_what_python_cannot_read_is_told_with_advice(content: bytes, why: str) -> None:
    with pytest.raises(NotText, match=why) as raised:
        decode_python(content)
    assert raised.value.advice


def test_a_page_that_is_no_utf_8_keeps_its_bytes() -> None:
    decoded = decode_text(b"caf\xe9: torchrun\r\n")
    assert decoded.encode(decoded.text.replace("torchrun", "shim run")) == b"caf\xe9: shim run\r\n"


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\x0cb\u2028c\nd", "\n\n"])
def test_only_line_feeds_end_lines(text: str) -> None:
    assert "".join(split_lines(text)) == text
    assert len(split_lines(text)) == text.count("\n") + bool(text and not text.endswith("\n"))


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

    monkeypatch.setattr(f"{text.__name__}.{function}", fail, raising=False)
    with pytest.raises(type(error)):
        replace_content(file, b"before", b"after")
    monkeypatch.undo()
    assert file.read_bytes() == b"before"
    assert os.listdir(file.parent) == ["x.py"]
