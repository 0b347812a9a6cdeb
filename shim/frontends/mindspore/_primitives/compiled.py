"""The communication primitives as MindSpore sees them. Import this only where MindSpore is loaded.

MindSpore runs Python in three ways, and each must give the right gradient or none:

- PyNative: the collective runs on the caller's tensors and is recorded by MindSpore's custom autograd function.
- Compiled (``GRAPH_MODE``, ``mindspore.jit``): a Python call would fall back, run, and give a gradient of zero without
  a word. So a primitive is an ``ops.Custom`` with a Python kernel for the CPU: the compiler asks it for shapes, dtypes and
  the gradient's function, and the running graph calls the kernel with NumPy views of its memory. Gradients communicate
  after everything before them: each waits for its primitive's output (``depend``), the rest is up to the attributes.
  What the kernel raises reaches the caller as it is, but MindSpore takes 3 seconds for that and gives the graph up.
- Traced (``jit(capture_mode="trace")``): refused by ``refuse_tracing``.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from shim.core.tensors import copy_of
from shim.errors import ShimError, UnsupportedError
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._primitives.plain import PlainPrimitive, plain

_mindspore: Any = sys.modules["mindspore"]
_function: Any = sys.modules["mindspore.common._grad_function"]._Function

_numpy: Any = sys.modules["numpy"]

_NOTHING = _numpy.zeros(1, "float32")
_spent_hooks: list[Any] = []
_WITH_BUFFER = "?biufc"


class _Recorded(_function):  # type: ignore[misc]  # mypy does not see MindSpore
    """One call of a primitive in PyNative mode, with what its gradient needs."""

    @staticmethod
    def forward(ctx: Any, primitive: Any, *tensors: Any) -> Any:
        ctx.primitive = primitive
        ctx.save_for_backward(*tensors)
        output = primitive.forward(*tensors)
        ctx.is_tuple = isinstance(output, tuple)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        dout = gradients if ctx.is_tuple else gradients[0]
        return (None, *ctx.primitive.get_bprop()(*ctx.saved_tensors, None, dout))


def recorded(primitive: Any, tensors: tuple[Any, ...]) -> Any:
    """Carry out *primitive* on MindSpore's *tensors* and let MindSpore record that, which takes 40 us."""
    return _Recorded.apply(primitive, *tensors)


class _Copy:
    """The primitive that copies a tensor."""

    def forward(self, tensor: Any) -> Any:
        return copy_of(tensor)

    def get_bprop(self) -> Callable[..., Any]:
        return lambda _tensor, _output, dout: (dout,)


def copy_with_addition(tensor: Any, addition: Callable[[Any], Any]) -> Any:
    """Return a copy of *tensor*, to whose gradient *addition* of that gradient will be added, once.

    A hook, because the tensor itself may go on without the copy. MindSpore crashes if a hook removes itself.
    """
    while _spent_hooks:
        _spent_hooks.pop().remove()
    has_run = False

    def add(gradient: Any) -> Any:
        nonlocal has_run
        if has_run:
            return gradient
        has_run = True
        _spent_hooks.append(hook)
        return gradient + addition(gradient)

    hook = tensor.register_hook(add)
    return _Recorded.apply(_Copy(), tensor)


class CompiledPrimitive(_mindspore.ops.Custom):  # type: ignore[misc]  # mypy does not see MindSpore
    """What makes a ``CommunicationPrimitive`` one of MindSpore's."""

    kind: Any

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Become a custom operator whose kernel is that of a plain primitive made with the same *arguments*."""
        made_with = tuple(arguments.items())
        try:
            hash(made_with)
        except TypeError as error:
            raise self.kind.caller.explain(
                ArgumentTypeError(f"must be made with numbers, names and such: {error}")
            ) from None
        kernel = _kernel(type(self).kind, made_with)
        super().__init__(kernel.compute, kernel.shape, kernel.dtype, "pyfunc")
        self.name = type(self).__name__
        self.init_attrs = dict(arguments)
        # In the order of the program, and its gradients in the opposite order, on every rank alike; without these two the
        # compiler orders independent collectives, and not always in the same way.
        self.add_prim_attr("side_effect_io", True)
        self.add_prim_attr("side_effect_backprop", True)
        self.add_prim_attr("no_eliminate", True)

    def __infer__(self, *inputs: Any) -> dict[str, Any]:
        """Tell shape and dtype of the output; ``Custom`` itself would tell the shape (1,) for ()."""
        return {
            "shape": self.out_shape(*(each["shape"] for each in inputs)),
            "dtype": self.out_dtype(*(each["dtype"] for each in inputs)),
            "value": None,
        }


class CompiledCell(_mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """What makes a ``CellPrimitive`` a Cell of MindSpore's, whose compiler reads ``construct``.

    ``chosen`` is called in it with numbers that the compiler knows, and is then the primitive that ``choose`` returns.
    """

    def begin(self, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        PlainPrimitive.begin(self, arguments)
        self.chosen = _mindspore.ops.constexpr(self.choose)

    add_prim_attr = PlainPrimitive.add_prim_attr
    get_attr_dict = PlainPrimitive.get_attr_dict


@functools.cache
def _kernel(kind: Any, arguments: tuple[tuple[str, Any], ...]) -> _Kernel:
    """Return one kernel for all primitives made alike: MindSpore keeps every kernel it has ever seen."""
    primitive = plain(kind, dict(arguments))
    return _Kernel(_computation_of(primitive), functools.partial(_shape, primitive), primitive.output_dtype)


class _Kernel(NamedTuple):
    """Contents, shape and dtype of a primitive's output in a compiled graph; tuples of them where that is a tuple."""

    compute: Callable[..., Any]
    shape: Callable[..., tuple[Any, ...]]
    dtype: Callable[..., Any]


def _computation_of(primitive: Any) -> Callable[..., Any]:
    """Return the function that carries *primitive* out on views of the graph's memory, on a thread of MindSpore's.

    MindSpore counts the inputs by the function's parameters.
    """

    def compute(*arrays: Any) -> Any:
        output = primitive.forward(*arrays)
        if isinstance(output, tuple):
            return tuple(map(_readable, output)) or _NOTHING
        return _readable(output)

    names = [f"input_{place}" for place in range(len(primitive.inputs))]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    compute.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as inspect reads it
    return compute


def _shape(primitive: Any, *shapes: Any) -> tuple[Any, ...]:
    try:
        output = tuple(primitive.output_shape(*map(_static, shapes)))
        if () in map(tuple, shapes):  # MindSpore hands such a tensor to a kernel as a number without dtype
            raise UnsupportedError("{input} must not have shape () in a compiled graph\nPass it reshaped to (1,).")
        for shape in output if isinstance(next(iter(output), None), tuple) else (output,):
            if 0 in shape:
                raise UnsupportedError("the output must not be empty in a compiled graph\nCall it in PyNative mode.")
        return output
    except ShimError as error:
        raise primitive.caller.explain(error) from None


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
