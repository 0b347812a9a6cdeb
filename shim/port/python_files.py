"""Port a Python file's text: the launch lines in it, then its code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from shim.port.apis import APIS
from shim.port.files.mentions import mentions_api, mentions_launcher
from shim.port.launch_lines import Launched, port_launch_lines_in_python
from shim.port.plan import Plan, Ported
from shim.port.syntax import is_python

PortFunction = Callable[[str, Plan], Ported]


class BrokenPort(Exception):
    """What was made of a file is no Python."""


def port_python(text: str, plan: Plan, port: PortFunction) -> Ported:
    """Return *text*, the code of a module, ported by *plan*: its code by *port*. Raises SyntaxError, and BrokenPort for a bug of ours."""
    content, framework = text.encode("utf-8", "surrogatepass"), APIS[plan.source].framework
    launched = Launched(text, 0, ())
    if mentions_launcher(content, framework):
        launched = port_launch_lines_in_python(text, plan)
    if not mentions_api(content, framework) and not plan.reexports:
        return _checked(text, Ported(launched.text, launched.places, launched.entries))
    ported = port(launched.text, plan)
    entries = [dataclasses.replace(entry, line=launched.line_before(entry.line)) for entry in ported.entries]
    return _checked(text, Ported(ported.text, launched.places + ported.places, sorted([*launched.entries, *entries])))


def _checked(before: str, ported: Ported) -> Ported:
    if ported.text != before and is_python(before) and not is_python(ported.text):
        raise BrokenPort("the ported file would not be Python")
    return ported
