"""The largest, the smallest and the order of elements. Pairs are the values and their indices."""

from __future__ import annotations


def _along(name: str) -> tuple[str, ...]:
    return (
        "pair",
        f"torch.{name}(input:tensor, dim:axis, keepdim=False)",
        f"paddle.{name}(x:tensor, axis, keepdim=False) & paddle.arg{name}(x:tensor, axis, keepdim=False)",
        f"mindspore.ops.{name}(input:tensor, axis, keepdims:keepdim=False)",
    )


FUNCTIONS = {
    "argmax": (
        "torch.argmax(input:tensor, dim:axis=None, keepdim=False)",
        "paddle.argmax(x:tensor, axis=None, keepdim=False)",
        "mindspore.ops.argmax(input:tensor, dim:axis=None, keepdim=False)",
    ),
    "argmin": (
        "torch.argmin(input:tensor, dim:axis=None, keepdim=False)",
        "paddle.argmin(x:tensor, axis=None, keepdim=False)",
        "mindspore.ops.argmin(input:tensor, axis=None, keepdims:keepdim=False).astype(mindspore.int64)",
        "mindspore.ops.argmin(input:tensor, axis=None, keepdims:keepdim=False)",
    ),
    "argsort": (
        "torch.argsort(input:tensor, dim:axis=-1, descending=False, stable=False)",
        "paddle.argsort(x:tensor, axis=-1, descending=False, stable=False)",
        "mindspore.ops.sort(input_x:tensor, axis=-1, descending=False)[1].astype(mindspore.int64)",
        "mindspore.ops.argsort(input:tensor, axis=-1, descending=False)",
    ),
    "bincount": (
        "torch.bincount(input:tensor, weights=None, minlength=0)",
        "paddle.bincount(x:tensor, weights=None, minlength=0)",
        "mindspore.ops.bincount(input:tensor, *, minlength=0).astype(mindspore.int64)",
        "mindspore.ops.bincount(input:tensor, weights=None, minlength=0)",
    ),
    "max_pair": _along("max"),
    "max_of_two": (
        "torch.max(input:tensor, other)",
        "paddle.maximum(x:tensor, y:other)",
        "mindspore.ops.maximum(input:tensor, other)",
    ),
    "min_pair": _along("min"),
    "min_of_two": (
        "torch.min(input:tensor, other)",
        "paddle.minimum(x:tensor, y:other)",
        "mindspore.ops.minimum(input:tensor, other)",
    ),
    "sort": (
        "pair",
        "torch.sort(input:tensor, dim:axis=-1, descending=False, stable=False)",
        "paddle.sort(x:tensor, axis=-1, descending=False) & paddle.argsort(x:tensor, axis=-1, descending=False)",
        "mindspore.ops.sort(input_x:tensor, axis=-1, descending=False)",
    ),
    "sort_values": (
        "torch.sort(input:tensor, dim:axis=-1, descending=False)[0]",
        "paddle.sort(x:tensor, axis=-1, descending=False)",
        "mindspore.ops.sort(input_x:tensor, axis=-1, descending=False)[0]",
    ),
    "topk": (
        "pair",
        "torch.topk(input:tensor, k, dim:axis=-1, largest=True, sorted=True)",
        "paddle.topk(x:tensor, k, axis=-1, largest=True, sorted=True)",
        "mindspore.ops.topk(input:tensor, k, dim:axis=-1, largest=True, sorted=True)",
    ),
    "unique": ("torch.unique(input:tensor)", "paddle.unique(x:tensor)"),
}

METHODS = {
    "argmax": (
        "torch: .argmax(dim:axis=None, keepdim=False)",
        "paddle: .argmax(axis=None, keepdim=False)",
        "mindspore: .argmax(axis=None, keepdims:keepdim=False)",
    ),
    "argmin": (
        "torch: .argmin(dim:axis=None, keepdim=False)",
        "paddle: .argmin(axis=None, keepdim=False)",
        "mindspore: .argmin(axis=None, keepdims:keepdim=False).astype(mindspore.int64)",
        "mindspore: .argmin(axis=None, keepdims:keepdim=False)",
    ),
    "argsort": (
        "torch: .argsort(dim:axis=-1, descending=False, stable=False)",
        "paddle: .argsort(axis=-1, descending=False, stable=False)",
        "mindspore: .argsort(axis=-1, descending=False).astype(mindspore.int64)",
        "mindspore: .argsort(axis=-1, descending=False)",
    ),
    "bincount": (
        "torch paddle: .bincount(weights=None, minlength=0)",
        "mindspore: .bincount(*, minlength=0).astype(mindspore.int64)",
        "mindspore: .bincount(weights=None, minlength=0)",
    ),
    "max": (
        "pair",
        "torch: .max(dim:axis, keepdim=False)",
        "paddle: .max(axis, keepdim=False) & .argmax(axis, keepdim=False)",
        "mindspore.ops.max(input:tensor, axis, keepdims:keepdim=False)",
    ),
    "min": (
        "pair",
        "torch: .min(dim:axis, keepdim=False)",
        "paddle: .min(axis, keepdim=False) & .argmin(axis, keepdim=False)",
        "mindspore.ops.min(input:tensor, axis, keepdims:keepdim=False)",
    ),
    "sort": (
        "pair",
        "torch: .sort(dim:axis=-1, descending=False, stable=False)",
        "paddle: .sort(axis=-1, descending=False) & .argsort(axis=-1, descending=False)",
        "mindspore.ops.sort(input_x:tensor, axis=-1, descending=False)",
    ),
    "sort_values": (
        "torch: .sort(dim:axis=-1, descending=False)[0]",
        "paddle: .sort(axis=-1, descending=False)",
        "mindspore.ops.sort(input_x:tensor, axis=-1, descending=False)[0]",
    ),
    "topk": (
        "pair",
        "torch: .topk(k, dim:axis=-1, largest=True, sorted=True)",
        "paddle: .topk(k, axis=-1, largest=True, sorted=True)",
        "mindspore: .topk(k, dim:axis=-1, largest=True, sorted=True)",
    ),
    "unique": ("torch paddle: .unique()",),
}

_INDICES = "are int32 in MindSpore and int64 elsewhere"
_CONVERT = "Convert them where the code depends on their dtype, or sends them."
_ORDERED = ("mindspore", "index-dtype", f"the indices {_INDICES}", _CONVERT)
_INDEX = ("from mindspore", "index-dtype", f"the indices {_INDICES}", _CONVERT)
_COUNTS = ("from mindspore", "index-dtype", "the counts are float32 in MindSpore and int64 elsewhere", _CONVERT)
DIFFERENCES = {
    "topk": _ORDERED,
    ".topk": _ORDERED,
    "sort": _ORDERED,
    ".sort": _ORDERED,
    "argmin": _INDEX,
    ".argmin": _INDEX,
    "argsort": _INDEX,
    ".argsort": _INDEX,
    "bincount": _COUNTS,
    ".bincount": _COUNTS,
}
