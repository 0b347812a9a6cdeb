"""Functions and methods of tensors, by what they do: a row for each, with a form for each API, after the kind of what a call returns if it is no tensor.

``table.py`` says how a form is written. The first form of an API is the one that a port writes.
"""

from __future__ import annotations

from collections.abc import Mapping

from shim.port.correspondences.tensors import elementwise, indexing, layers, making, ordering, reducing, shaping

_GROUPS = (making, shaping, elementwise, reducing, ordering, indexing, layers)

Rows = Mapping[str, tuple[str, ...]]

FUNCTIONS: Rows = {row: texts for group in _GROUPS for row, texts in group.FUNCTIONS.items()}
METHODS: Rows = {row: texts for group in _GROUPS for row, texts in group.METHODS.items()}
# Of rows that do not do quite the same: the framework that differs, after "from" where only its own code is read otherwise; the rule; why; what to do.
DIFFERENCES: Rows = {row: texts for group in _GROUPS for row, texts in group.DIFFERENCES.items()}
# Rows whose results have the dtype that the call names, or that of the tensor that it takes.
_OF_ELEMENTS = "abs clamp gather index_select masked_fill masked_select neg scatter sort_values tril triu"
KEEP_DTYPE = frozenset(
    (*making.FUNCTIONS, *making.METHODS, *shaping.FUNCTIONS, *shaping.METHODS, *_OF_ELEMENTS.split())
) - {"arange"}
