"""``torch.multiprocessing.spawn`` for Paddle, whose ``spawn`` does not pass the rank to the function that it calls."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst

from shim.port.correspondences import forms_of
from shim.port.plan import Left
from shim.port.rules.port import Port
from shim.port.rules.remarks import left_without

SPAWN = "torch.multiprocessing.spawn"
_NAMES = ("fn", "args", "nprocs", "join", "daemon")  # in their order, which is Paddle's, too
_COMMA = re.compile(rb"\s*,\s*")
_PADDLES = {"fn": "func"}


def port_spawn(port: Port, node: cst.Call, spell: Callable[[str], str]) -> str:
    """Port the call *node*, have its function ask for the rank, and return Paddle's function. Raises Left, and changes nothing, where it cannot."""
    given: dict[str, cst.Arg] = {}
    for position, argument in enumerate(node.args):
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if argument.star or (not keyword and position >= len(_NAMES)):
            raise left_without(port, SPAWN)
        given[keyword or _NAMES[position]] = argument
    if port.target.framework != "paddle" or not given.keys() <= {*_NAMES, "start_method"} or "fn" not in given:
        raise left_without(port, SPAWN)
    function = _function(port, given["fn"].value)
    rank = f"{spell(forms_of('rank', port.plan.target)[0].name)}()"
    _have_it_ask(port, function, rank)
    for name, argument in given.items():
        if argument.keyword is not None and name in _PADDLES:
            port.edits.replace(*port.file.span(argument.keyword), _PADDLES[name])
    if "nprocs" not in given:
        port.edits.insert_after(port.file.span(node.args[-1]).end, ", nprocs=1")
    return "paddle.distributed.spawn"


def _function(port: Port, value: cst.BaseExpression) -> cst.FunctionDef:
    """Return the file's own function that *value* names, if nothing else uses it and its first parameter can be taken out."""
    found = port.file.definition(value) if isinstance(value, cst.Name) and port.file.references(value) == 1 else None
    parameters = found.params if found is not None else None
    if (
        found is None
        or parameters is None
        or found.decorators
        or not isinstance(found.body, cst.IndentedBlock)
        or parameters.posonly_params
        or not parameters.params
        or parameters.params[0].default is not None
    ):
        raise Left(
            "spawned-function",
            f"{SPAWN} passes the rank to {port.file.code(value)} first, and paddle.distributed.spawn does not",
            "Have it be a function of this file, used here alone, with a parameter for the rank; and port again.",
        )
    return found


def _have_it_ask(port: Port, function: cst.FunctionDef, rank: str) -> None:
    """Take the first parameter of *function* out, and have its body begin with asking for the *rank*."""
    parameter = function.params.params[0]
    start, end = port.file.span(parameter)
    if parameter.annotation is not None:
        end = port.file.outer_span(parameter.annotation.annotation).end
    comma = _COMMA.match(port.file.text, end)
    following = comma.end() if comma is not None else end
    port.edits.remove(start, following)
    body = function.body.body
    first = body[1] if len(body) > 1 and function.get_docstring() is not None else body[0]
    at = port.file.span(first).start
    port.edits.insert(at, port.file.indented(at, [f"{parameter.name.value} = {rank}", ""]))
