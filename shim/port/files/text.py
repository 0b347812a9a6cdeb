"""A file's bytes as text and back, so that what a port does not touch stays byte for byte as it is; Python's own parser for the text."""

from __future__ import annotations

import ast
import codecs
import contextlib
import difflib
import io
import os
import re
import shutil
import tempfile
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path

_LINE_END = re.compile(r"\r\n|\r|\n")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNDECODABLE = "surrogateescape"  # keeps bytes that are no UTF-8 as they are


class NotText(ValueError):
    """The bytes cannot be read as text. ``advice`` says what to do."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.advice = advice


@dataclass(frozen=True)
class Decoded:
    """``text`` is the file's, with line ends as Python reads them: ``\\n`` alone. ``original`` has its own line ends."""

    text: str
    original: str
    encoding: str
    errors: str = "strict"

    def encode(self, ported: str) -> bytes:
        """Return the bytes of the file with the text *ported*: lines that are still there keep their ends, others get the most frequent one."""
        return _with_line_ends(self, ported).encode(self.encoding, self.errors)


def decode_python(content: bytes) -> Decoded:
    """Decode a Python file by its byte order mark or coding line. Raises NotText."""
    _refuse_binary(content)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(_first_lines(content)).readline)
        decoded = _decode(content, encoding)
        reversible = decoded.original.encode(encoding) == content
    except (SyntaxError, LookupError, ValueError) as error:
        raise NotText(
            f"Python cannot decode it: {error}",
            "save the file as UTF-8, or give its encoding in the first line: # -*- coding: latin-1 -*-",
        ) from None
    if not reversible:
        raise NotText(f"its encoding, {encoding}, does not give the same bytes again", "save the file as UTF-8")
    return decoded


def decode_text(content: bytes) -> Decoded:
    """Decode a file that is no Python; bytes that are not UTF-8 are kept. Raises NotText for binary files and UTF-16."""
    _refuse_binary(content)
    return _decode(content, "utf-8-sig" if content.startswith(codecs.BOM_UTF8) else "utf-8", _UNDECODABLE)


def split_lines(text: str) -> list[str]:
    r"""Return the lines of *text* with their ends. Only ``\n`` ends a line: str.splitlines also takes form feeds for ends."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _decode(content: bytes, encoding: str, errors: str = "strict") -> Decoded:
    original = content.decode(encoding, errors)
    return Decoded(_LINE_END.sub("\n", original) if "\r" in original else original, original, encoding, errors)


def _refuse_binary(content: bytes) -> None:
    if content.startswith(_UTF_16):
        raise NotText("it is UTF-16", "save the file as UTF-8")
    if b"\0" in content:
        raise NotText("it has zero bytes, so it is no text", "leave the file out")


def _first_lines(content: bytes) -> bytes:
    r"""Return what a coding line can stand in, also where ``\r`` alone ends lines."""
    return b"\n".join(re.split(rb"\r\n|\r|\n", content, maxsplit=2)[:2])


def _with_line_ends(before: Decoded, ported: str) -> str:
    ends = _LINE_END.findall(before.original)
    kinds = sorted(dict.fromkeys(ends), key=ends.count, reverse=True)
    if kinds in ([], ["\n"]):
        return ported
    if len(kinds) == 1:
        return ported.replace("\n", kinds[0])
    old, new = split_lines(before.text), split_lines(ported)
    chosen = [kinds[0]] * len(new)
    for what, a, a_end, b, b_end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if what in ("equal", "replace"):
            pairs = min(min(a_end, len(ends)) - a, b_end - b)
            chosen[b : b + pairs] = ends[a : a + pairs]
    return "".join(line[:-1] + end if line.endswith("\n") else line for line, end in zip(new, chosen, strict=True))


class ChangedMeanwhile(OSError):
    """Somebody else has written the file since it was read."""


def replace_content(target: Path, before: bytes, after: bytes) -> None:
    """Give *target* the content *after*, if it still has the content *before*. Its permissions stay, and its owner where that is allowed.

    At every moment the file has one content or the other: the new one is written beside it and then takes its name. *target* is no
    symbolic link. Raises OSError, ChangedMeanwhile among them, and then leaves the file and its folder as they were.
    """
    if target.read_bytes() != before:
        raise ChangedMeanwhile("it has changed since it was read")
    if not os.access(target, os.W_OK):
        raise PermissionError("it is write-protected")
    number, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", suffix=".port", dir=target.parent)
    try:
        with open(number, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(number)
        status = target.stat()
        with contextlib.suppress(PermissionError):
            os.chown(name, status.st_uid, status.st_gid)
        shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def create_file(target: Path, content: bytes) -> None:
    """Make the file *target* with *content*, all of it at once. Raises OSError, FileExistsError among them, and then leaves the folder as it was."""
    number, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", suffix=".port", dir=target.parent)
    try:
        with open(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(number)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.link(name, target)
    finally:
        os.unlink(name)


def parse(text: str | bytes) -> ast.Module:
    """Return the syntax tree of *text*, without warnings: a port is not the place for remarks on other people's string escapes. Raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except ValueError as error:  # lone surrogates, zero bytes
            raise SyntaxError(str(error)) from None


def is_python(text: str) -> bool:
    """Whether *text* is a module of Python 3."""
    try:
        parse(text)
    except SyntaxError:
        return False
    return True
