"""Form feeds before statements, which LibCST loses: all later code would be taken for what stands a character before it.

See: https://github.com/Instagram/LibCST (1.9.0); to be removed when ``parse_module("\\fx = 1").code`` has the form feed.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable
from dataclasses import replace

from shim.port.plan import Plan, Ported

_MARK = "# shim port: form feed\n"
_NO_STATEMENT = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class FormFeedLost(Exception):
    """The port has removed a mark, so that the form feed cannot be put back."""


def with_form_feeds(text: str, plan: Plan, port: Callable[[str, Plan], Ported]) -> Ported:
    """Return what *port* makes of *text*, where form feeds before statements get lines of their own in the meantime. Raises SyntaxError."""
    places = _before_statements(text) if "\f" in text else []
    if not places:
        return port(text, plan)
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    ported = port(_MARK.join(pieces), plan)
    if ported.text.count(_MARK) != len(places):
        raise FormFeedLost("a form feed got lost")
    lines = [text.count("\n", 0, place) + 1 for place in places]  # of the form feeds

    def before(line: int) -> int:
        return next((line - number for number, mark in enumerate(lines) if line <= mark + number), line - len(lines))

    entries = [replace(entry, line=before(entry.line)) for entry in ported.entries]
    return replace(ported, text=ported.text.replace(_MARK, ""), entries=entries)


def _before_statements(text: str) -> list[int]:
    """Return where the form feeds end that stand on a line before the first word of a statement."""
    places = []
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    is_first = True
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.NEWLINE:
                is_first = True
            elif is_first and token.type not in _NO_STATEMENT:
                is_first = False
                begin = starts[token.start[0] - 1]
                if (feed := text.rfind("\f", begin, begin + token.start[1])) >= 0:
                    places.append(feed + 1)
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from None
    return places
