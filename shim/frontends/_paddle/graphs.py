"""Collectives in paddle's static graphs: in a ``paddle.static.Program`` and in what ``paddle.jit.to_static`` compiles.

A graph holds values in place of tensors. A collective of values is a Python operator of paddle's, which calls the same collective
with tensors when the graph runs, and whose results are assigned to the values that it writes. As paddle's own collectives in
graphs, it has no gradient: the gradient of what is computed from such a value is that of the value before.

Paddle's executor runs operators on several threads in any order that their values allow. So every operator here also reads and
writes one value, the graph's first: they run in the order of the program on every rank, in branches and loops too.
This module imports without paddle.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NoReturn

import shim
from shim.core.callers import Caller
from shim.errors import UnsupportedError
from shim.frontends._paddle import tasks
from shim.frontends._paddle.groups import group_views

SYMBOLIC: set[type] = set()  # the types of what stands for tensors in graphs, once paddle is loaded
_OPTIONS = "___jit_transform_options___"  # of a function, as paddle's compiler looks for it
_MARK = "shim_order"  # an attribute of the operator that makes the value which keeps the order
_numbers = itertools.count()


class _AsWritten:
    """Tells paddle's compiler, which rewrites the functions that a graph's function calls, to leave one as it is."""

    def need_transform(self, mode: Any) -> bool:
        meet_paddle()
        return bool(mode.name != "AST")  # the other compiler runs it between its graphs

    def need_capture_control_flow(self) -> bool:
        return False


def run_as_written(namespace: Mapping[str, Any]) -> None:
    """Have paddle's compiler call the functions in *namespace* that are ours, and the methods of its classes, as they are."""
    options = _AsWritten()
    for thing in [one for one in namespace.values() if str(getattr(one, "__module__", None)).startswith("shim.")]:
        for member in vars(thing).values() if isinstance(thing, type) else [thing]:
            function = getattr(member, "fget", member)
            if isinstance(function, FunctionType):
                function.__dict__[_OPTIONS] = options


def meet_paddle() -> None:
    """Fill ``SYMBOLIC``, and have the compiler that reads bytecode leave our functions alone, which takes it 40 s; if paddle is loaded."""
    paddle = sys.modules.get("paddle")
    if paddle is not None and not SYMBOLIC and hasattr(paddle, "pir"):
        SYMBOLIC.update((paddle.pir.Value, paddle.static.Variable, paddle.base.framework.Parameter))
        if hasattr(paddle.framework.core, "eval_frame_skip_file_prefix"):
            paddle.framework.core.eval_frame_skip_file_prefix((f"{Path(shim.__file__).parent}{os.sep}",))


def refuse_in_graphs(caller: Caller) -> None:
    """Refuse a call in static mode; for functions without tensors, which would run while the graph is made, and never with it."""
    paddle = sys.modules.get("paddle")
    if paddle is not None and not paddle.in_dynamic_mode():
        _refuse(caller)


def refuse_symbolic(caller: Caller, tensors: Sequence[Any]) -> None:
    """Refuse *tensors* that are a graph's values, for messages that the caller does not wait for, as a graph runs one after the other."""
    if any(type(tensor) in SYMBOLIC for tensor in tensors):
        _refuse(caller)


def _refuse(caller: Caller, hint: str = "Call it outside the graph, in dynamic mode.") -> NoReturn:
    raise caller.explain(UnsupportedError(f"cannot be a part of a static graph of paddle's\n{hint}"))


def places_like(outputs: Any, models: Sequence[Any]) -> Any:
    """Return *outputs*; an empty list is filled with a new value like each of *models*."""
    if isinstance(outputs, list) and not outputs:
        outputs.extend(map(sys.modules["paddle"].zeros_like, models))
    return outputs


def recorded(function: Callable[..., Any], caller: Caller, group: Any, outputs: Any, *arguments: Any) -> tasks.Task:
    """Put ``function(caller, *arguments, group, True)``, which writes *outputs*, in the graph that is being made."""
    group_views.group_of(caller, group)
    paddle: Any = sys.modules["paddle"]
    run = getattr(paddle._C_ops, "_run_python_op", None)
    if run is None or not paddle.framework.in_pir_mode():
        _refuse(caller, "It can in graphs of Paddle 3.3, which are made of pir.Value.")
    _refuse_saving(caller)
    arguments = tuple(list(one) if isinstance(one, (list, tuple)) else one for one in arguments)  # as they are now
    inputs, written = list(_values_in(arguments)), list(_values_in([outputs]))
    places = [next(place for place, one in enumerate(inputs) if one is output) for output in written]
    order = _order_of(paddle)

    def compute(*tensors: Any) -> Any:
        with paddle.base.dygraph.base.guard(), paddle.no_grad():
            *given, turn = tensors
            for place in places:
                given[place] = given[place].clone()  # others may read it now
            function(caller, *_replaced(arguments, iter(given)), group, True)
            return *(given[place] for place in places), turn.clone()

    def describe(*metas: Any) -> Any:
        described = [metas[place] for place in (*places, -1)]
        return tuple(paddle.static.MetaTensor(shape=one.shape, dtype=one.dtype) for one in described)

    results = run(
        *inputs,
        order,
        name=f"{caller.function}_{next(_numbers)}".replace(".", "_"),
        input_names=[f"input_{number}" for number in range(len(inputs) + 1)],
        output_names=[f"output_{number}" for number in range(len(places) + 1)],
        attrs={"infer_meta_fn_ptr": describe, "fn_ptr": compute},
        inplace_map={},
    )
    for result, value in zip(results, (*written, order), strict=True):
        had_no_gradient, result.stop_gradient = value.stop_gradient, True
        paddle._C_ops.assign_out_(result, value)
        value.stop_gradient = had_no_gradient
    return tasks.ended()


def _order_of(paddle: Any) -> Any:
    """Return the value that all of the graph's collectives read and write; the first of them makes it, before everything else."""
    block = paddle.static.default_main_program().global_block()
    for op in block.ops:
        if op.has_attr(_MARK):
            return op.result(0)
    point = paddle.pir.get_current_insertion_point()
    if block.ops:
        paddle.pir.set_insertion_point(block.ops[0])
    order = paddle.zeros([1], "int32")
    order.get_defining_op().set_bool_attr(_MARK, True)
    paddle.pir.set_insertion_point(point)
    return order


def _refuse_saving(caller: Caller) -> None:
    """Refuse a graph that ``paddle.jit.save`` makes for its file, which leaves out what no output comes from, paddle's own collectives too."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "save" and frame.f_globals.get("__name__") == "paddle.jit.api":
            raise caller.explain(UnsupportedError("cannot be saved\npaddle.jit.save would leave it out of its file."))
        frame = frame.f_back


def _values_in(arguments: Sequence[Any]) -> Iterator[Any]:
    for argument in arguments:
        for one in argument if isinstance(argument, (list, tuple)) else (argument,):
            if type(one) in SYMBOLIC:
                yield one


def _replaced(arguments: Sequence[Any], tensors: Iterator[Any]) -> Iterator[Any]:
    """Yield the *arguments* with the next of *tensors* in place of each value."""
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            yield [next(tensors) if type(one) in SYMBOLIC else one for one in argument]
        else:
            yield next(tensors) if type(argument) in SYMBOLIC else argument


run_as_written(vars(tasks))
run_as_written(vars(group_views))
