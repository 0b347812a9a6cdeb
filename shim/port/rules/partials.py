"""``functools.partial`` of a function of the API: its later calls have to mean the same to the target's function."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import libcst as cst

from shim.port.correspondences.table import ADVISORY, Form, Parameter
from shim.port.plan import Left
from shim.port.reading.source_file import SourceFile
from shim.port.rules.lists import is_for_root_only, to_wrap, wants_other_list
from shim.port.rules.rewriting import Rewriting


def not_alike(name: str, target: Form) -> Left:
    """Return why *name* is left that is passed on, as a value or in a partial, and called where the port does not see it."""
    why = f"{name} is used as a value, and {target.name} has its parameters in another order or with another meaning"
    advice = "Call it by name, or write a function that calls it with the target's parameters."
    return Left("function-as-value", why, advice)


def check_partial(rewriting: Rewriting, name: str) -> None:
    """Raise Left unless what is given later to the partial of the source's function *name* is for the same parameters of the target's."""
    source, target = rewriting.source, rewriting.target
    roles = [each.parameter.role for each in rewriting.given]
    positional = roles[: sum(each.keyword is None for each in rewriting.given)]
    pairs = zip(positional, target.parameters, strict=False)
    kept = len([*takewhile(lambda pair: pair[0] == pair[1].role, pairs)])  # the others get keywords
    added = {text.partition("=")[0] for text in rewriting.added}
    ours = [*takewhile(lambda each: each.role not in roles, source.parameters[len(positional) :])]
    theirs = [*takewhile(lambda each: each.role not in roles and each.name not in added, target.parameters[kept:])]
    calls = _later_calls(rewriting.port.file, rewriting.node)
    if calls is None:
        free = [each for each in source.parameters if each.role not in (*roles, *ADVISORY, "-")]
        is_list_given = any(is_for_root_only(target, role) for role in roles)
        are_alike = (
            (is_list_given or not wants_other_list(rewriting.port, target))
            and len(theirs) >= len(ours)
            and all(map(_is_like, ours, theirs))
            and all(_is_like(each, target.named(each.name)) for each in free if target.of_role(each.role) is not None)
        )
    else:
        given = [(place, argument) for call in calls for place, argument in enumerate(call.args)]
        are_alike = all(_means_the_same(argument, place, rewriting, ours, theirs) for place, argument in given)
    if not are_alike:
        raise not_alike(name, target)


def _means_the_same(
    argument: cst.Arg, place: int, rewriting: Rewriting, ours: Sequence[Parameter], theirs: Sequence[Parameter]
) -> bool:
    """Tell whether *argument* of a later call, at *place*, is for parameters that mean the same."""
    if argument.star:
        return False
    if argument.keyword is not None:
        one, other = (form.named(argument.keyword.value) for form in (rewriting.source, rewriting.target))
    else:
        one, other = (free[place] if place < len(free) else None for free in (ours, theirs))
    return _is_like(one, other) and not (other is not None and _is_converted(rewriting, argument.value, other.role))


def _is_converted(rewriting: Rewriting, value: cst.BaseExpression, role: str) -> bool:
    """Tell whether the target takes another form of *value*."""
    port, target = rewriting.port, rewriting.target
    if not port.between_frameworks:
        return False
    if is_for_root_only(target, role):
        return to_wrap(port, value, rewriting.value("root"), target, rewriting.spell) is not None
    return role == "op" and not port.is_op(value)


def _is_like(one: Parameter | None, other: Parameter | None) -> bool:
    return one is not None and other is not None and (one.role, one.inverted) == (other.role, other.inverted)


def _later_calls(file: SourceFile, partial: cst.CSTNode) -> list[cst.Call] | None:
    """Return the calls of what *partial* makes: the one that it stands in, or all of a variable that holds it; None where others may call it."""
    calls = [call for call, _ in file.nodes.of(cst.Call)]
    at_once = [call for call in calls if call.func is partial]
    named = [
        call for call in calls if isinstance(call.func, cst.Name) and [*(file.values_of(call.func) or ())] == [partial]
    ]
    if at_once or not named:
        return at_once or None
    variable = named[0].func
    return named if isinstance(variable, cst.Name) and file.references(variable) == len(named) else None
