"""Which functions of ``ops.communication`` work in place: all, until ``set_comm_ops_inplace`` says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.mindspore._errors import ArgumentTypeError

# What MindSpore lets one name. ``barrier`` has nothing to write, and goes on whatever is said of it.
_FUNCTIONS = frozenset(
    {
        "all_gather",
        "all_gather_into_tensor",
        "all_gather_into_tensor_uneven",
        "all_gather_object",
        "all_reduce",
        "all_to_all",
        "all_to_all_single",
        "all_to_all_v_c",
        "barrier",
        "batch_isend_irecv",
        "broadcast",
        "broadcast_object_list",
        "gather",
        "gather_into_tensor",
        "gather_object",
        "irecv",
        "isend",
        "recv",
        "recv_object_list",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "reduce_scatter_tensor_uneven",
        "scatter",
        "scatter_object_list",
        "scatter_tensor",
        "send",
        "send_object_list",
    }
)
_returning: set[str] = set()  # the functions that return their results instead


def switch(caller: Caller, is_enable: bool, func_list: Sequence[str] | None) -> None:
    """Let the functions in *func_list*, or all, work in place, or not."""
    if not isinstance(is_enable, bool):
        raise caller.explain(ArgumentTypeError(f"is_enable must be a bool, got {type(is_enable).__name__}"))
    if func_list is not None and not isinstance(func_list, (list, tuple)):
        raise caller.explain(ArgumentTypeError(f"func_list must be a list of names, got {type(func_list).__name__}"))
    names = _FUNCTIONS if func_list is None else func_list
    for name in names:
        if name not in _FUNCTIONS:
            raise caller.explain(ArgumentError(f"func_list must be names of functions, got {name!r}"))
    if is_enable:
        _returning.difference_update(names)
    else:
        _returning.update(names)


def either(caller: Caller, in_place: Callable[[], Any], functional: Callable[[], Any]) -> Any:
    """Call the form of *caller*'s function that is switched on."""
    return functional() if _name_of(caller) in _returning else in_place()


def in_place_only(caller: Caller) -> Caller:
    """Return *caller*, whose function has no other form, unless that is asked of it."""
    if _name_of(caller) in _returning:
        raise caller.explain(
            ArgumentError(
                "works only in place\nSwitch it back with set_comm_ops_inplace(True, [name of the function])."
            )
        )
    return caller


def _name_of(caller: Caller) -> str:
    return caller.function.rpartition(".")[2]
