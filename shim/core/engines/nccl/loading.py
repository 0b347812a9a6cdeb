"""C libraries that a process has loaded already, or can load, and tables of their functions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shim.errors import EngineError


def loaded(name: str) -> list[str]:
    """Return the files of the libraries called *name*, such as libnccl.so, that are loaded in this process; no file twice."""
    found: dict[tuple[int, int], str] = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").split(maxsplit=5)[5:]
            if path and os.path.basename(path[0]).startswith(name):
                try:
                    status = os.stat(path[0])
                except OSError:
                    continue  # it was removed since
                found.setdefault((status.st_dev, status.st_ino), path[0])
    return list(found.values())


def functions_of(path: str, signatures: Mapping[str, tuple[Any, ...]]) -> Any:
    """Return the library at *path*, whose functions take what *signatures* say and return an int. Raises EngineError where one is missing."""
    try:
        library = ctypes.CDLL(path)
        for name, arguments in signatures.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
    except (OSError, AttributeError) as error:
        raise EngineError(f"{path} cannot be used: {error}") from None
    return library


def of_wheels(packages: Sequence[str], pattern: str) -> list[str]:
    """Return the libraries of NVIDIA's wheels that are installed: the files of *pattern* in the folders lib of *packages*."""
    found = []
    for name in packages:
        try:
            spec = find_spec(name)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            found += [str(path) for path in sorted(Path(folder, "lib").glob(pattern))]
    return found


def load_beside(path: str, pattern: str) -> None:
    """Load the libraries of *pattern* that lie in the folder of the one at *path*, so that it finds them by their names."""
    for other in sorted(Path(path).parent.glob(pattern)) if os.path.isabs(path) else ():
        with suppress(OSError):
            ctypes.CDLL(str(other))
