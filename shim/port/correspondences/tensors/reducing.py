"""Reductions of a tensor, of all its elements or along dimensions, and running sums."""

from __future__ import annotations


def _function(name: str) -> tuple[str, ...]:
    """Return the forms of a reduction that MindSpore calls by NumPy's words."""
    return (
        f"torch.{name}(input:tensor, dim:axis=None, keepdim=False)",
        f"paddle.{name}(x:tensor, axis=None, keepdim=False)",
        f"mindspore.ops.{name}(input:tensor, axis=None, keepdims:keepdim=False)",
    )


def _method(name: str, keep: str = "keepdims") -> tuple[str, ...]:
    return (
        f"torch: .{name}(dim:axis=None, keepdim=False)",
        f"paddle: .{name}(axis=None, keepdim=False)",
        f"mindspore: .{name}(axis=None, {keep}:keepdim=False)",
    )


def _truth(name: str) -> tuple[str, ...]:
    return (
        f"torch.{name}(input:tensor, dim:axis=None, keepdim=False)",
        f"paddle.{name}(x:tensor, axis=None, keepdim=False)",
        f"mindspore.ops.{name}(input:tensor, axis=None, keep_dims:keepdim=False)",
    )


def _spread(name: str) -> tuple[str, ...]:
    return (
        f"torch: .{name}(dim:axis=None, unbiased=True, keepdim=False)",
        f"paddle: .{name}(axis=None, unbiased=True, keepdim=False)",
        f"mindspore: .{name}(axis=None, ddof:!1, keepdims:keepdim=False)",
    )


FUNCTIONS = {
    "all": _truth("all"),
    "amax": (*_function("amax"), "torch.max(input:tensor)", "paddle.max(x:tensor, axis=None, keepdim=False)"),
    "amin": (*_function("amin"), "torch.min(input:tensor)", "paddle.min(x:tensor, axis=None, keepdim=False)"),
    "any": _truth("any"),
    "cumprod": (
        "torch.cumprod(input:tensor, dim:axis, *, dtype=None)",
        "paddle.cumprod(x:tensor, dim:axis, *, dtype=None)",
        "mindspore.ops.cumprod(input:tensor, dim:axis, dtype=None)",
    ),
    "cumsum": (
        "torch.cumsum(input:tensor, dim:axis, *, dtype=None)",
        "paddle.cumsum(x:tensor, axis, dtype=None)",
        "mindspore.ops.cumsum(x:tensor, axis, dtype=None)",
    ),
    "logsumexp": (
        "torch.logsumexp(input:tensor, dim:axis, keepdim=False)",
        "paddle.logsumexp(x:tensor, axis, keepdim=False)",
        "mindspore.ops.logsumexp(input:tensor, dim:axis, keepdim=False)",
    ),
    "mean": (
        "torch.mean(input:tensor, dim:axis=None, keepdim=False)",
        "paddle.mean(x:tensor, axis=None, keepdim=False)",
        "mindspore.ops.mean(x:tensor, axis=None, keep_dims:keepdim=False)",
    ),
    "norm": (
        "torch.norm(input:tensor, p='fro', dim:axis=None, keepdim=False)",
        "paddle.linalg.norm(x:tensor, p=None, axis=None, keepdim=False)",
        "mindspore.ops.norm(A:tensor, *, dim:axis=None, keepdim=False)",
    ),
    "prod": (
        "torch.prod(input:tensor, dim:axis=None, keepdim=False, *, dtype=None)",
        "paddle.prod(x:tensor, axis=None, keepdim=False, dtype=None)",
        "mindspore.ops.prod(input:tensor, axis=None, keep_dims:keepdim=False, dtype=None)",
    ),
    "sum": (
        "torch.sum(input:tensor, dim:axis=None, keepdim=False, *, dtype=None)",
        "paddle.sum(x:tensor, axis=None, dtype=None, keepdim=False)",
        "mindspore.ops.sum(input:tensor, dim:axis=None, keepdim=False, *, dtype=None)",
        "mindspore.mint.sum(input:tensor, dim:axis=None, keepdim=False, *, dtype=None)",
    ),
}

METHODS = {
    "all": _method("all", "keep_dims"),
    "amax": _method("amax"),
    "amin": _method("amin"),
    "any": _method("any", "keep_dims"),
    "cumsum": (
        "torch: .cumsum(dim:axis, *, dtype=None)",
        "paddle: .cumsum(axis, dtype=None)",
        "mindspore: .cumsum(axis, dtype=None)",
    ),
    "logsumexp": (
        "torch: .logsumexp(dim:axis, keepdim=False)",
        "paddle: .logsumexp(axis, keepdim=False)",
        "mindspore: .logsumexp(dim:axis, keepdim=False)",
    ),
    "mean": _method("mean", "keep_dims"),
    "norm": (
        "torch: .norm(p='fro', dim:axis=None, keepdim=False)",
        "paddle: .norm(p=None, axis=None, keepdim=False)",
        "mindspore: .norm(*, dim:axis=None, keepdim=False)",
    ),
    "std": _spread("std"),
    "sum": (
        "torch: .sum(dim:axis=None, keepdim=False, *, dtype=None)",
        "paddle: .sum(axis=None, dtype=None, keepdim=False)",
        "mindspore: .sum(axis=None, dtype=None, keepdims:keepdim=False)",
    ),
    "var": _spread("var"),
}

_OF_INTEGERS = "Give it a dtype where the numbers may be integers."
_CUMSUM = (
    "mindspore",
    "dtype-of-integers",
    "cumsum of integers smaller than int64 keeps their dtype in MindSpore, and is int64 elsewhere",
    _OF_INTEGERS,
)
_PRODUCT = (
    "paddle",
    "dtype-of-integers",
    "the product of integers smaller than int64 keeps their dtype in Paddle, and is int64 elsewhere",
    _OF_INTEGERS,
)
DIFFERENCES = {"cumprod": _PRODUCT, "prod": _PRODUCT, "cumsum": _CUMSUM, ".cumsum": _CUMSUM}
