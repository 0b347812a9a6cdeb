"""NumPy 2 beside a MindSpore that is built for NumPy 1: what to install, and its one error taken out of the program's way.

MindSpore 2.10 declares ``numpy>=1.25``, so pip installs NumPy 2 beside it. The first operator then raises SystemError and
NumPy prints two long explanations; operators work after that. Remove this file once such a MindSpore is not supported any more.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from importlib import metadata

_LAST_FOR_NUMPY_1 = (2, 10)


def numpy_advice() -> str:
    """Return the line that says which NumPy to install, '' where MindSpore has the one it needs or is not installed."""
    try:
        mindspore, numpy = metadata.version("mindspore"), metadata.version("numpy")
    except metadata.PackageNotFoundError:
        return ""
    if numpy.startswith("1.") or tuple(map(int, re.findall(r"\d+", mindspore)[:2])) > _LAST_FOR_NUMPY_1:
        return ""
    return (
        f"MindSpore {mindspore} needs NumPy 1, and NumPy {numpy} is installed: run `python3 -m pip install 'numpy<2'`"
    )


def take_first_error() -> None:
    """Where MindSpore is loaded beside NumPy 2, call an operator in vain, so that the program's own first call does not raise.

    MindSpore refuses the argument and runs no kernel, after which it would let nobody choose a device any more.
    """
    mindspore, numpy = sys.modules.get("mindspore"), sys.modules.get("numpy")
    if mindspore is None or numpy is None or numpy.__version__.startswith("1."):
        return
    # whatever it raises: the program's own first call is the one to tell of it
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):
        mindspore.mint.empty(object())
