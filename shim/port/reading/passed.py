"""Which parameters a call's arguments are for."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shim.port.correspondences import Form, Parameter


def passed(call: cst.Call, form: Form) -> Iterator[tuple[cst.BaseExpression, Parameter]]:
    """Yield what *call* passes to the parameters of *form*, up to an argument that unpacks others."""
    for position, argument in enumerate(call.args):
        if argument.star:
            return
        parameter = form.taking(position, None if argument.keyword is None else argument.keyword.value)
        if parameter is not None:
            yield argument.value, parameter
