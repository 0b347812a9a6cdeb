"""What ``help()`` of a frontend's public function tells: its own parameters by name (``*src*``), and the page it follows.

Parameters that mean the same in every function of a framework, such as ``group``, need not be named each time. Of tensors, it says
how their shapes are related, of a timeout its unit, and of a root or a peer whether it is a rank of the world or of the group. A
check can only look for the words that such a sentence has. A function that does what another one does may leave that to the other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checks.frontend_functions import parameters_of, public_functions
from checks.source import Function, modules

SAME_EVERYWHERE = frozenset({"async_op", "group", "sync_op", "tag", "use_calc_stream"})
_PAGE = re.compile(r"^See: https://\S+", re.MULTILINE)
_MOVE_NO_TENSOR = frozenset({"split", "wait", "wait_tensor"})
_MEANINGS = (  # the names of some parameters, the words of which their docstring has one, and what is missing without
    (r"\w*tensor\w*|(in|out)puts?|input_list|self", r"shape|elements|rows", "how the tensors' shapes are related"),
    (r"\w*split_sizes", r"rows", "that the split sizes are rows"),
    (r"timeout\w*", r"seconds|timedelta", "the unit of the timeout"),
    (r"src|dst", r"world|\*group\*", "whether a rank is the world's or the group's"),
)


def check(root: Path) -> list[str]:
    """Find public functions whose docstrings leave out a parameter, or the page."""
    findings = []
    for name, module, function in public_functions({module.name: module for module in modules(root, "shim/frontends")}):
        docstring = ast.get_docstring(function) or ""
        place = f"{module.path}:{function.lineno}: {name}"
        unnamed = [
            parameter
            for parameter in parameters_of(function.args)
            if parameter not in SAME_EVERYWHERE and f"*{parameter}*" not in docstring
        ]
        if unnamed:
            findings.append(f"{place} does not say what {', '.join(unnamed)} is for")
        if not _PAGE.search(docstring):
            findings.append(f"{place} does not say which page it follows: See: https://...")
        findings += [f"{place} does not say {missing}" for missing in _unsaid(function, docstring)]
    return findings


def _unsaid(function: Function, docstring: str) -> Iterator[str]:
    if function.name in _MOVE_NO_TENSOR or docstring.startswith("Do what ``"):
        return
    for names, words, missing in _MEANINGS:
        concerned = any(re.fullmatch(names, parameter) for parameter in parameters_of(function.args))
        if concerned and not re.search(words, docstring):
            yield missing
