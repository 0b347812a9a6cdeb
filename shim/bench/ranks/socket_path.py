"""The path of a socket, of which an address holds 107 bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def short_path(file: Path) -> Iterator[str]:
    """Give a path to *file* that fits into an address, however long that of its folder is; it is good as long as the context."""
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)
