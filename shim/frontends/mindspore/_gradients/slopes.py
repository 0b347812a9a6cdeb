"""What a rank's elements have to do with what all ranks' were combined to: the gradient of every reduction.

Functions and primitives share it. MindSpore's compiler reads the functions that are made here, with the primitives that
they call; the functions of PyNative mode hand over collectives of Python's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp

Collective = Callable[[Any], Any]  # from this rank's tensor to a new one
Slope = Callable[[Any, Any], Any]


def slope(
    op: ReduceOp, ranks: int, all_reduce: Callable[[ReduceOp], Collective], others: Callable[[], Collective]
) -> Slope:
    """Return the function from a rank's *x* and the gradient *g* of what *op* made of all *ranks*' to the gradient of *x*.

    *all_reduce* makes the collective of a reduce op, *others* that of ``product_of_others``.
    A product's is the product of the other ranks' elements, which are gathered, so that it is right where *x* is 0.
    Where several ranks have the maximum or minimum, each of them gets the same part of *g*.
    """
    if op is ReduceOp.PRODUCT:
        return _slope_of_product(others())
    if op in (ReduceOp.MAX, ReduceOp.MIN):
        return _slope_of_extreme(all_reduce(op), all_reduce(ReduceOp.SUM))
    scale, mean = 1.0 / ranks, op is ReduceOp.AVG

    def _slope(_x: Any, g: Any) -> Any:
        return g * scale if mean else g

    return _slope


def _slope_of_product(others: Collective) -> Slope:
    def _slope(x: Any, g: Any) -> Any:
        return g * others(x)

    return _slope


def _slope_of_extreme(extreme: Collective, total: Collective) -> Slope:
    ops = sys.modules["mindspore"].ops
    equal, cast, dtype_of = ops.Equal(), ops.Cast(), ops.DType()

    def _slope(x: Any, g: Any) -> Any:
        has_it = cast(equal(x, extreme(x)), dtype_of(g))
        return g * has_it / total(has_it)

    return _slope


def product_of_others(caller: Caller, group: ProcessGroup, tensor: Any) -> Any:
    """Return the product of the other ranks' tensors like *tensor*, which is MindSpore's, or NumPy's view of it."""
    numpy, mindspore = sys.modules["numpy"], sys.modules["mindspore"]
    of_mindspore = isinstance(tensor, mindspore.Tensor)
    own = tensor.asnumpy() if of_mindspore else tensor
    every = numpy.empty((group.size, *own.shape), own.dtype)
    calls.all_gather(caller, group, every, own).wait()
    exact = every.astype("float32") if own.dtype.name in ("float16", "bfloat16") else every
    product = numpy.prod(numpy.delete(exact, group.rank, 0), axis=0, dtype=exact.dtype).astype(own.dtype)
    return mindspore.Tensor.from_numpy(product) if of_mindspore else product
