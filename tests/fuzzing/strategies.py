"""Calls as hypothesis draws them: arguments such as the parameter's name promises, others, and none where there is a default."""

from __future__ import annotations

import importlib
import inspect
from datetime import timedelta
from typing import Any

from fuzzed_rank import Call
from hypothesis import strategies as st
from recipes import AWKWARD, FRAMEWORKS, GROUPS, LAYOUTS, Recipe

MODULES = (
    "shim.frontends.torch.distributed",
    "shim.frontends.torch.distributed.nn.functional",
    "shim.frontends.paddle_3.distributed",
    "shim.frontends.paddle_3.distributed.stream",
    "shim.frontends.mindspore.mint.distributed",
    "shim.frontends.mindspore.communication",
    "shim.frontends.mindspore.communication.comm_func",
    "shim.frontends.mindspore.ops",
)

# What is not called, and why.
EXCLUDED = {
    "DebugLevel": "an enumeration, which is Python's to make",
    "GroupName": "another name of str",
    "Group": "groups are made by new_group",
    "ProcessGroup": "groups are made by new_group, and their works by calls",
    "Work": "likewise",
    "CommHandle": "likewise",
    "breakpoint": "it opens a debugger",
    "launch": "it replaces the program",
    "spawn": "it starts processes",
    "TCPStore": "it waits as long as it is told for a server that is not there",
    "rendezvous": "likewise, for other processes",
    "gloo_init_parallel_env": "likewise",
    "register_rendezvous_handler": "what it changes stays for the next call",
    "set_comm_ops_inplace": "likewise",
    "set_debug_level": "likewise",
    "FileStore": "it makes files wherever it is told to",
}

_DTYPES = st.sampled_from(["float32", "float64", "int32", "int64", "uint8", "bool", "complex64", "float16"])
_SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
_ARRAYS = st.builds(
    lambda dtype, shape, layout: Recipe("array", (dtype, shape, layout)),
    st.one_of(st.just("float32"), _DTYPES),
    st.one_of(st.just((2,)), st.just((4,)), _SHAPES),
    st.one_of(st.just("plain"), st.sampled_from(sorted(LAYOUTS))),
)
_RANKS = st.one_of(st.integers(0, 1), st.integers(-2, 3))
_TIMEOUTS = st.sampled_from([None, timedelta(seconds=0.2), timedelta(0), timedelta(seconds=-1), 1, 0, -1, "soon"])
_GROUPS = st.one_of(st.none(), st.sampled_from(GROUPS).map(lambda name: Recipe("group", (name,))))
_PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.integers(),
    st.sampled_from([2**31, 2**63, 2**64, -(2**63), 10**30]),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    _TIMEOUTS,
)
_ANYTHING = st.recursive(
    st.one_of(_PLAIN, _ARRAYS, _GROUPS, st.sampled_from(sorted(AWKWARD)).map(lambda name: Recipe("awkward", (name,)))),
    lambda some: st.one_of(
        st.lists(some, max_size=3),
        st.lists(some, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.integers(0, 3), st.text(max_size=3)), some, max_size=2),
    ),
    max_leaves=4,
)


def functions_of(module: str) -> list[str]:
    """Return the names of what *module* offers to be called, but for what is excluded."""
    found = importlib.import_module(module)
    return [
        name
        for name in found.__all__
        if name not in EXCLUDED and callable(getattr(found, name)) and not _is_error(getattr(found, name))
    ]


def _is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseException)


@st.composite
def calls(draw: st.DrawFn, module: str, name: str) -> tuple[Call, ...]:
    """Draw a call that both ranks make, or one for each of them."""
    function = getattr(importlib.import_module(module), name)
    first = draw(_call_of(module, name, function))
    return (first, draw(_call_of(module, name, function))) if draw(st.integers(0, 5)) == 5 else (first,)


@st.composite
def _call_of(draw: st.DrawFn, module: str, name: str, function: Any) -> Call:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for parameter in _parameters_of(function):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        has_default = parameter.default is not parameter.empty
        if has_default and draw(st.booleans()):
            continue
        value = draw(st.one_of(*[_promised(module, parameter)] * 3, _ANYTHING))
        if parameter.kind == parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            keywords[parameter.name] = value
    return Call(module, name, tuple(positional), keywords)


def _parameters_of(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # a class of C's
        return []


def _promised(module: str, parameter: inspect.Parameter) -> st.SearchStrategy[Any]:
    """Draw what somebody would give who goes by the name."""
    name = parameter.name.lower()
    if "timeout" in name:
        return _TIMEOUTS
    if "group" in name and "rank" not in name and "size" not in name:
        return _GROUPS
    if name in ("op", "reduce_op", "op_type"):
        return st.one_of(
            st.sampled_from(["SUM", "MAX", "MIN"]).map(lambda op: Recipe("reduce_op", (op,))),
            st.sampled_from(["isend", "irecv"]).map(lambda name: Recipe("attribute", (name,))),
            st.sampled_from(["sum", "max", "min", "prod"]),
        )
    if "sizes" in name or "splits" in name or "numel" in name or "counts" in name or "shape" in name:
        return st.one_of(st.none(), st.lists(st.integers(-1, 4), max_size=3), _SHAPES)
    if "ranks" in name:
        return st.lists(st.one_of(_RANKS, st.lists(_RANKS, max_size=2)), max_size=3)
    if any(part in name for part in ("rank", "src", "dst", "root", "peer", "size", "count", "tag", "dim")):
        return st.one_of(st.none(), _RANKS)
    if name.endswith("_op") or name.startswith(("is_", "use_", "wait")):
        return st.booleans()
    if "object" in name or name == "obj":
        return st.one_of(_PLAIN, st.lists(_PLAIN, min_size=1, max_size=2))
    if name.endswith("s") or "list" in name:
        return st.lists(_tensors(module), max_size=3)
    return _tensors(module) if parameter.default is parameter.empty else st.just(parameter.default)


def _tensors(module: str) -> st.SearchStrategy[Recipe]:
    framework = FRAMEWORKS[module.split(".")[2]]
    made = st.builds(lambda dtype, shape: Recipe("tensor", (framework, dtype, shape)), _DTYPES, _SHAPES)
    usual = st.just(Recipe("tensor", (framework, "float32", (4,))))
    return st.one_of(usual, made, _ARRAYS)
