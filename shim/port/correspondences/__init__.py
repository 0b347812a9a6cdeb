"""Which functions, parameters, members and names of the APIs correspond: two tables, one for collectives, checked against ``shim.record``, and one for tensors."""

from __future__ import annotations

from shim.port.correspondences.names import name_for
from shim.port.correspondences.no_equivalent import declared
from shim.port.correspondences.table import ADVISORY, Form, Parameter, form_for, forms_of, recorded, rows_with

__all__ = [
    "ADVISORY",
    "Form",
    "Parameter",
    "declared",
    "form_for",
    "forms_of",
    "name_for",
    "recorded",
    "rows_with",
]
