"""Finds the examples in the docstrings of the installed frameworks, for all functions and classes whose signatures are recorded.

The frameworks are imported in a process of their own, which prints the docstrings: see ``main``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Sequence

from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.reader import examples_in
from shim.launch.original import program_of
from shim.record import FRONTENDS, read

_PATIENCE = 120.0  # seconds for the import of a framework


def installed_examples(framework: str) -> list[Example]:
    """Return the examples of the installed *framework*, in the order of its recorded names. Raises ImportError where it cannot be imported."""
    found = []
    for function, text in _read_elsewhere(framework):
        found += examples_in(text, framework, function, f"docstring of {function}")
    return found


@functools.cache  # what is installed does not change while this process runs, and importing it takes seconds
def _read_elsewhere(framework: str) -> Sequence[tuple[str, str]]:
    command = [sys.executable, "-c", program_of(__name__), framework]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode:
        raise ImportError(
            f"{framework} is installed, and cannot be imported for its docstrings\n{done.stderr.rstrip()}"
        )
    return [(name, text) for name, text in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    """Print the docstrings of the installed framework that the command names as JSON, on the last line."""
    sys.stdout.write(json.dumps(docstrings_of(sys.argv[1])) + "\n")


def docstrings_of(framework: str) -> list[tuple[str, str]]:
    """Return the recorded names of *framework* that it has docstrings for, each object under its first name."""
    importlib.import_module(framework)
    record = read(next(file for file in reversed(FRONTENDS.values()) if file.startswith(f"{framework}-")))
    found: dict[int, tuple[str, str]] = {}
    for module, names in record.modules.items():
        try:
            imported = importlib.import_module(module)
        except ImportError:
            continue  # recorded of a path that is an attribute, not a module: paddle.distributed.stream
        for name in names:
            thing = getattr(imported, name, None)
            text = inspect.getdoc(thing) if thing is not None else None
            if text and id(thing) not in found:
                found[id(thing)] = (f"{module}.{name}", text)
    return list(found.values())
