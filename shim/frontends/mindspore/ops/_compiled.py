"""The communication primitives as MindSpore sees them. Import this only where MindSpore is loaded.

MindSpore runs Python in three ways, and each must give the right gradient or none:

- PyNative: the collective runs on the caller's tensors and is recorded by MindSpore's custom autograd function.
- Compiled (``GRAPH_MODE``, ``mindspore.jit``): a Python call would fall back, run, and give a gradient of zero without
  a word. So a primitive is an ``ops.Custom`` with a Python kernel for the CPU: the compiler asks it for shapes, dtypes and
  the gradient's function, and the running graph calls the kernel with NumPy views of its memory.
  What the kernel raises reaches the caller as it is, but MindSpore takes 3 seconds for that and gives the graph up.
- Traced (``jit(capture_mode="trace")``): refused by ``CommunicationPrimitive.run``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from shim.errors import ShimError, UnsupportedError
from shim.frontends.mindspore.ops._primitive import CommunicationPrimitive, PlainPrimitive, plain

__all__ = ["CompiledPrimitive", "CompiledTuplePrimitive", "run_and_record"]

_mindspore: Any = sys.modules["mindspore"]
_function: Any = sys.modules["mindspore.common._grad_function"]._Function
_executor: Any = sys.modules["mindspore.graph.api"]._pynative_executor

_WITH_BUFFER = "?biufc"


class _Recorded(_function):  # type: ignore[misc]  # mypy does not see MindSpore
    """One call of a primitive in PyNative mode, with what its gradient needs."""

    @staticmethod
    def forward(ctx: Any, primitive: CommunicationPrimitive, *tensors: Any) -> Any:
        ctx.primitive = primitive
        ctx.save_for_backward(*tensors)
        return primitive.forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return (None, *ctx.primitive.get_bprop()(*ctx.saved_tensors, None, *gradients))


def run_and_record(primitive: CommunicationPrimitive, tensors: tuple[Any, ...]) -> Any:
    """Carry out *primitive* on MindSpore's *tensors*; where no gradient is being recorded, without the 40 us of that."""
    return _Recorded.apply(primitive, *tensors) if _executor.requires_grad() else primitive.forward(*tensors)


class CompiledPrimitive(_mindspore.ops.Custom):  # type: ignore[misc]
    """What makes a ``CommunicationPrimitive`` one of MindSpore's."""

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Become a custom operator whose kernel is that of a plain primitive made with the same *arguments*."""
        kernel = _kernel(_plain_class(type(self)), tuple(arguments.items()))
        super().__init__(kernel.compute, kernel.shape, kernel.dtype, "pyfunc")
        self.name = type(self).__name__
        self.init_attrs = dict(arguments)
        # In the order of the program, on every rank alike; without it the compiler orders independent collectives.
        self.add_prim_attr("side_effect_io", True)
        self.add_prim_attr("no_eliminate", True)


class CompiledTuplePrimitive(_mindspore.nn.Cell):  # type: ignore[misc]
    """What makes a ``TuplePrimitive`` a Cell of MindSpore's: the compiler reads ``construct``."""

    def begin(self, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        PlainPrimitive.begin(self, arguments)

    add_prim_attr = PlainPrimitive.add_prim_attr
    get_attr_dict = PlainPrimitive.get_attr_dict

    def construct(self, input_x: Any) -> Any:
        outputs: Any = ()
        for tensor in input_x:
            outputs = (*outputs, self.each(tensor))
        return outputs


def _plain_class(kind: type) -> Any:
    return next(base for base in kind.__mro__ if not issubclass(base, CompiledPrimitive))


@functools.cache
def _kernel(kind: Any, arguments: tuple[tuple[str, Any], ...]) -> _Kernel:
    """Return one kernel for all primitives made alike: MindSpore keeps every kernel it has ever seen."""
    primitive = plain(kind, dict(arguments))
    return _Kernel(_computation_of(primitive), functools.partial(_shape, primitive), _dtype)


class _Kernel(NamedTuple):
    """Contents, shape and dtype of a primitive's output in a compiled graph."""

    compute: Callable[..., Any]
    shape: Callable[..., tuple[int, ...]]
    dtype: Callable[..., Any]


def _computation_of(primitive: Any) -> Callable[..., Any]:
    """Return the function that carries *primitive* out on views of the graph's memory, on a thread of MindSpore's.

    MindSpore counts the inputs by the function's parameters.
    """

    def of_one(first: Any) -> Any:
        return _readable(primitive.forward(first))

    def of_two(first: Any, second: Any) -> Any:
        return _readable(primitive.forward(first, second))

    return of_one if len(primitive.inputs) == 1 else of_two


def _shape(primitive: Any, *shapes: Any) -> tuple[int, ...]:
    try:
        return tuple(primitive.output_shape(*map(_static, shapes)))
    except ShimError as error:
        raise primitive.caller.explain(error) from None


def _dtype(*dtypes: Any) -> Any:
    return dtypes[0]


def _static(shape: Any) -> tuple[int, ...]:
    """Return *shape*, which must be known and not empty: MindSpore's Python kernels take no other."""
    if min(shape, default=1) < 0:
        raise UnsupportedError("{input} must have a known shape in a compiled graph\nCall it in PyNative mode.")
    if 0 in shape:
        raise UnsupportedError("{input} must not be empty in a compiled graph\nCall it in PyNative mode.")
    return tuple(shape)


def _readable(array: Any) -> Any:
    """Return *array* in a dtype that has a buffer, from which MindSpore copies the bytes: its bfloat16 has none."""
    return array.view(f"uint{8 * array.itemsize}") if array.dtype.kind not in _WITH_BUFFER else array
