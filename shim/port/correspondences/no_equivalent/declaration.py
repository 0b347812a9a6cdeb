"""How a name without an equivalent is declared."""

from __future__ import annotations

from typing import NamedTuple


class Declared(NamedTuple):
    """Names that a target has nothing for, with the reason and what to do instead.

    ``names`` are separated by spaces, each without the module, which the table of a framework has. What is below a name is declared with it.
    ``why`` goes on after "X has no equivalent of NAME: "; ``advice`` is a sentence. ``to`` are the APIs that have nothing; all others where it is empty.
    """

    names: str
    why: str
    advice: str
    to: str = ""
