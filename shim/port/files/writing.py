"""Write a file as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path


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
