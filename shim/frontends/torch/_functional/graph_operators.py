"""The operators of torch that stand for functional collectives in graphs, ``torch.ops.shim``. Import this only where torch is loaded.

Their effects keep a graph's collectives in order, and those whose results nobody uses in the graph. A size is the group's when the
graph was made, which its shapes depend on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from shim.core import calls, groups
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, StateError
from shim.frontends.torch._functional import eager_calls, graph_calls
from shim.frontends.torch._functional.eager_calls import Call
from shim.frontends.torch._functional.errors import functional_caller

_torch: Any = sys.modules["torch"]
_LIBRARY = _torch.library.Library("shim", "FRAGMENT")


class _Operator(NamedTuple):
    """An operator ``(Tensor input, *parameters*, int size, str group) -> Tensor``.

    ``arguments`` makes of the parameters what the function of ``eager_calls`` takes, ``shape`` of the input's shape, the
    size and the parameters the result's.
    """

    parameters: str
    arguments: Callable[..., tuple[Any, ...]]
    shape: Callable[..., Sequence[Any]]


def _gathered(shape: Sequence[Any], size: int) -> Sequence[Any]:
    return (size * shape[0], *shape[1:]) if len(shape) else (size,)


def _exchanged(shape: Sequence[Any], _size: int, rows: Any, output_splits: Any, _input_splits: Any) -> Sequence[Any]:
    for split in output_splits or ():
        _torch._check(split >= 0)
    return (rows, *shape[1:])


_OPERATORS = {
    "broadcast": _Operator("int root", lambda root: (root,), lambda shape, *_: shape),
    "all_reduce": _Operator("str op, float factor", lambda op, factor: (ReduceOp[op], factor), lambda shape, *_: shape),
    "reduce": _Operator(
        "str op, float factor, int root",
        lambda op, factor, root: (ReduceOp[op], factor, root),
        lambda shape, *_: shape,
    ),
    "all_gather": _Operator("", lambda: (None,), _gathered),
    "reduce_scatter": _Operator(
        "str op, float factor",
        lambda op, factor: (ReduceOp[op], factor, None),
        lambda shape, size, *_: (shape[0] // size, *shape[1:]),
    ),
    "all_to_all": _Operator(
        "SymInt rows, SymInt[]? output_splits, SymInt[]? input_splits",
        lambda rows, output_splits, input_splits: (rows, output_splits, input_splits, None),
        _exchanged,
    ),
}


def differentiate(name: str, function: Any) -> None:
    """Give the operator *name* the gradient of the autograd *function*, whose arguments are a Call and those of ``eager_calls``."""

    def forward(ctx: Any, *arguments: Any) -> Any:
        # Autograd has switched itself off; it must record what the outer transforms see of the operator.
        with _torch._C._AutoDispatchBelowAutograd(), _torch.enable_grad():
            return function.forward(ctx, *arguments)

    level: Any = type(
        function.__name__,
        (_torch.autograd.function._SingleLevelFunction,),
        {"forward": staticmethod(forward), "backward": staticmethod(function.backward)},
    )

    def kernel(tensor: Any, *given: Any) -> Any:
        call = _call(name, *given[-2:])._replace(carrier=graph_calls)
        with _within_a_transform():
            return level.apply(call, tensor, *_OPERATORS[name].arguments(*given[:-2]))

    _LIBRARY.impl(name, kernel, "Autograd")


@contextmanager
def _within_a_transform() -> Iterator[None]:
    """Allow an autograd function of one level, as it is called for each level of ``torch.func``'s transforms in its turn."""
    functorch = _torch._C._functorch
    before = functorch.get_single_level_autograd_function_allowed()
    functorch.set_single_level_autograd_function_allowed(True)
    try:
        yield
    finally:
        functorch.set_single_level_autograd_function_allowed(before)


def _call(name: str, size: int, group: str) -> Call:
    """Return the call of the function that the operator *name* stands for, in the group of this name."""
    function = f"{name}_single" if name in ("all_gather", "reduce_scatter", "all_to_all") else name
    caller = functional_caller(f"_functional_collectives.{function}", output="self", input="self")
    found = groups.find_group(group)
    if found is None:
        raise caller.explain(
            StateError(
                f"the graph needs the group {group!r}, which there is not\nMake the group before you run the graph."
            )
        )
    call = Call(caller, found)
    if found.size != size:
        call.refuse(ArgumentError(f"the graph was made for a group of {size} ranks\nCompile it again."))
    return call


def _define(name: str, operator: _Operator) -> None:
    parameters = "".join(f"{parameter}, " for parameter in (operator.parameters,) if parameter)

    def carry_out(tensor: Any, *given: Any) -> Any:
        call = _call(name, *given[-2:])
        call.check_tensors([tensor])
        return getattr(eager_calls, name)(call, call.plain(tensor), *operator.arguments(*given[:-2]))

    def imagine(tensor: Any, *given: Any) -> Any:
        return tensor.new_empty(operator.shape(tensor.shape, given[-2], *given[:-2]))

    _register(f"{name}(Tensor input, {parameters}int size, str group) -> Tensor", carry_out, imagine)


def _register(schema: str, carry_out: Callable[..., Any], imagine: Callable[..., Any]) -> None:
    name = schema.partition("(")[0]
    _LIBRARY.define(schema, tags=(_torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(name, carry_out, "CompositeExplicitAutograd")
    _LIBRARY._register_fake(name, imagine)
    if hasattr(_LIBRARY, "_register_effectful_op"):
        _LIBRARY._register_effectful_op(f"shim::{name}", _torch._library.effects.EffectType.ORDERED)
    else:  # before torch 2.10
        effects = _torch._higher_order_ops.effects
        effects._register_effectful_op(getattr(_torch.ops.shim, name).default, effects._EffectType.ORDERED)


def _announce(_tensor: Any, number: int, size: int, group: str) -> None:
    call = _call("coalesced", size, group)
    text = f"{number} coalesced call{'' if number == 1 else 's'}"
    calls.barrier(call.caller, call.group, before=text).wait()


for _name, _operator in _OPERATORS.items():
    _define(_name, _operator)
_register("announce(Tensor input, int number, int size, str group) -> ()", _announce, lambda *_: None)
