"""Functions of each element, of one tensor or of two."""

from __future__ import annotations

_UNARY = """
abs ceil cos erf exp floor isfinite isinf isnan log logical_not neg reciprocal round rsqrt sigmoid sign sin square tanh
"""
_BINARY = "logical_and logical_or maximum minimum"

FUNCTIONS = {
    **{
        name: (f"torch.{name}(input:tensor)", f"paddle.{name}(x:tensor)", f"mindspore.ops.{name}(input:tensor)")
        for name in _UNARY.split()
    },
    **{
        name: (
            f"torch.{name}(input:tensor, other)",
            f"paddle.{name}(x:tensor, y:other)",
            f"mindspore.ops.{name}(input:tensor, other)",
        )
        for name in _BINARY.split()
    },
    "clamp": (
        "torch.clamp(input:tensor, min=None, max=None)",
        "paddle.clip(x:tensor, min=None, max=None)",
        "mindspore.ops.clamp(input:tensor, min=None, max=None)",
        "torch.clip(input:tensor, min=None, max=None)",
        "mindspore.mint.clamp(input:tensor, min=None, max=None)",
    ),
    "isclose": (
        "torch.isclose(input:tensor, other, rtol=1e-05, atol=1e-08, equal_nan=False)",
        "paddle.isclose(x:tensor, y:other, rtol=1e-05, atol=1e-08, equal_nan=False)",
        "mindspore.ops.isclose(input:tensor, other, rtol=1e-05, atol=1e-08, equal_nan=False)",
    ),
    "sqrt": ("torch.sqrt(input:tensor)", "paddle.sqrt(x:tensor)", "mindspore.ops.sqrt(x:tensor)"),
    "trunc": ("torch.trunc(input:tensor)", "paddle.trunc(input:tensor)", "mindspore.ops.trunc(input:tensor)"),
    "where": (
        "torch.where(condition, input:chosen, other:rest)",
        "paddle.where(condition, x:chosen, y:rest)",
        "mindspore.ops.where(condition, input:chosen, other:rest)",
        "mindspore.mint.where(condition, input:chosen, other:rest)",
    ),
}

METHODS = {
    **{name: (f"torch paddle mindspore: .{name}()",) for name in (*_UNARY.split(), "sqrt", "trunc")},
    **{name: (f"torch mindspore: .{name}(other)", f"paddle: .{name}(y:other)") for name in _BINARY.split()},
    "clamp": (
        "torch mindspore: .clamp(min=None, max=None)",
        "paddle: .clip(min=None, max=None)",
        "torch: .clip(min=None, max=None)",
    ),
    "masked_fill": ("torch paddle mindspore: .masked_fill(mask, value)",),
    "masked_fill_": ("torch paddle: .masked_fill_(mask, value)", "mindspore: =.masked_fill(mask, value)"),
}

_SIGN = "of NaN is NaN in Paddle and 0 elsewhere"
DIFFERENCES = {
    "sign": ("paddle", "sign-of-nan", f"sign {_SIGN}", "Look for NaN before, if the numbers may hold it."),
    ".sign": ("paddle", "sign-of-nan", f"sign {_SIGN}", "Look for NaN before, if the numbers may hold it."),
}
