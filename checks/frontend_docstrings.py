"""What ``help()`` of a frontend's public function tells: its own parameters by name (``*src*``), and the page it follows.

Parameters that mean the same in every function of a framework, such as ``group``, need not be named each time.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from checks.frontend_functions import parameters_of, public_functions
from checks.source import modules

SAME_EVERYWHERE = frozenset({"async_op", "group", "sync_op", "tag", "use_calc_stream"})
_PAGE = re.compile(r"^See: https://\S+", re.MULTILINE)


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
    return findings
