"""What an example finds around it while it runs, and what is put back after it.

It is a program of its own: the module ``__main__`` is its file, which lies in a folder of its own that is the working folder, and the
variables are set that the launcher sets which its document asks for. A case finds the modules beside its own file. So ``inspect`` finds the source of its classes, as MindSpore's
compiler does, and what it leaves behind is gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from shim.conformance.examples.adapting.devices import rewritten
from shim.conformance.examples.example import Example

__all__ = ["as_program"]


@contextlib.contextmanager
def as_program(example: Example, variables: Mapping[str, str], built: dict[str, Any]) -> Iterator[ModuleType]:
    """Make *example* the program of this process and give its module, whose builtins are *built*; run nothing of it."""
    module, main, folder = ModuleType("__main__"), sys.modules["__main__"], os.getcwd()
    before, path = dict(os.environ), list(sys.path)
    with tempfile.TemporaryDirectory(prefix="shim-example-") as own:
        file = Path(own) / f"{Path(example.name).name.removesuffix('.py')}.py"
        file.write_text(_program(example), encoding="utf-8")
        module.__file__ = str(file)
        module.__dict__["__builtins__"] = built
        sys.modules["__main__"] = module
        os.environ.update(variables)
        os.chdir(own)
        if example.folder:
            sys.path.insert(0, example.folder)
        try:
            yield module
        finally:
            os.chdir(folder)
            sys.path[:] = path
            sys.modules["__main__"] = main
            for name in set(os.environ) - set(before):
                del os.environ[name]
            os.environ.update(before)


def _program(example: Example) -> str:
    """Return the example's code with each statement on its line in the document, as it runs on this machine."""
    lines: list[str] = []
    for step in example.steps:
        lines += [""] * (step.line - 1 - len(lines))
        lines[step.line - 1 :] = rewritten(example.framework, step.source)[0].splitlines()
    return "\n".join([*lines, ""])
