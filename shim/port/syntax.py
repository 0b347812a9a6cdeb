"""Python's own parser, without its warnings: a port is not the place for remarks on other people's string escapes."""

from __future__ import annotations

import ast
import warnings


def parse(text: str) -> ast.Module:
    """Return the syntax tree of *text*. Raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except ValueError as error:  # lone surrogates, zero bytes
            raise SyntaxError(str(error)) from None


def is_python(text: str) -> bool:
    """Whether *text* is a module of Python 3."""
    try:
        parse(text)
    except SyntaxError:
        return False
    return True
