"""Functions that make and join tensors, and methods of tensors: a row for each, with the kind of what a call returns and a form for each API.

The first form of an API is the one that a port writes. Methods that take no argument or each of theirs are in ``members``.
"""

from __future__ import annotations

_TENSOR, _TENSORS = "tensor", "tensors"

# The forms of MindSpore's mint come second: many of its kernels are for Ascend alone.
FUNCTIONS = {
    "arange": (
        _TENSOR,
        "torch.arange(start=0, end=None, step=1, *, dtype=None, device=None)",
        "paddle.arange(start=0, end=None, step=1, dtype=None)",
        "mindspore.ops.arange(start=0, end=None, step=1, *, dtype=None)",
        "mindspore.mint.arange(start=0, end=None, step=1, *, dtype=None)",
    ),
    "cat": (
        _TENSOR,
        "torch.cat(tensors, dim:axis=0)",
        "paddle.concat(x:tensors, axis=0)",
        "mindspore.ops.cat(tensors, axis=0)",
        "torch.concat(tensors, dim:axis=0)",
        "mindspore.mint.cat(tensors, dim:axis=0)",
        "mindspore.mint.concat(tensors, dim:axis=0)",
        "mindspore.ops.concat(tensors, axis=0)",
    ),
    "chunk": (
        _TENSORS,
        "torch.chunk(input:tensor, chunks, dim:axis=0)",
        "paddle.chunk(x:tensor, chunks, axis=0)",
        "mindspore.ops.chunk(input:tensor, chunks, axis=0)",
        "mindspore.mint.chunk(input:tensor, chunks, dim:axis=0)",
    ),
    "empty": (
        _TENSOR,
        "torch.empty(*size:shape, *, dtype=None, device=None)",
        "paddle.empty(shape, dtype=None)",
        "mindspore.mint.empty(*size:shape, *, dtype=None)",
    ),
    "empty_like": (
        _TENSOR,
        "torch.empty_like(input:tensor, *, dtype=None, device=None)",
        "paddle.empty_like(x:tensor, dtype=None)",
        "mindspore.mint.empty_like(input:tensor, *, dtype=None)",
    ),
    "full": (
        _TENSOR,
        "torch.full(size:shape, fill_value:value, *, dtype=None, device=None)",
        "paddle.full(shape, fill_value:value, dtype=None)",
        "mindspore.ops.full(size:shape, fill_value:value, *, dtype=None)",
        "mindspore.mint.full(size:shape, fill_value:value, *, dtype=None)",
    ),
    "ones": (
        _TENSOR,
        "torch.ones(*size:shape, *, dtype=None, device=None)",
        "paddle.ones(shape, dtype=None)",
        "mindspore.ops.ones(shape, dtype=None)",
        "mindspore.mint.ones(size:shape, *, dtype=None)",
    ),
    "ones_like": (
        _TENSOR,
        "torch.ones_like(input:tensor, *, dtype=None, device=None)",
        "paddle.ones_like(x:tensor, dtype=None)",
        "mindspore.ops.ones_like(input:tensor, *, dtype=None)",
        "mindspore.mint.ones_like(input:tensor, *, dtype=None)",
    ),
    "pad": (
        _TENSOR,
        "torch.nn.functional.pad(input:tensor, pad, mode='constant', value=None)",
        "paddle_3: paddle.nn.functional.pad(x:tensor, pad, mode='constant', value=0.0, data_format=None, pad_from_left_axis:first_axis_first=True)",
        "paddle_2: paddle.nn.functional.pad(x:tensor, pad, mode='constant', value=0.0, data_format='NCHW')",
        "mindspore.ops.pad(input_x:tensor, padding:pad, mode='constant', value=None)",
        "mindspore.mint.nn.functional.pad(input:tensor, pad, mode='constant', value=None)",
    ),
    "reshape": (
        _TENSOR,
        "torch.reshape(input:tensor, shape)",
        "paddle.reshape(x:tensor, shape)",
        "mindspore.ops.reshape(input:tensor, shape)",
        "mindspore.mint.reshape(input:tensor, shape)",
    ),
    "split": (
        _TENSORS,
        "torch.split(tensor, split_size_or_sections:parts, dim:axis=0)",
        "paddle.split(x:tensor, num_or_sections:parts, axis=0)",
        "mindspore.ops.split(tensor, split_size_or_sections:parts, axis=0)",
        "mindspore.mint.split(tensor, split_size_or_sections:parts, dim:axis=0)",
    ),
    "stack": (
        _TENSOR,
        "torch.stack(tensors, dim:axis=0)",
        "paddle.stack(x:tensors, axis=0)",
        "mindspore.ops.stack(tensors, axis=0)",
        "mindspore.mint.stack(tensors, dim:axis=0)",
    ),
    "tensor": (
        _TENSOR,
        "torch.tensor(data, *, dtype=None, device=None)",
        "paddle.to_tensor(data, dtype=None)",
        "mindspore.tensor(input_data:data, dtype=None)",
        "mindspore.Tensor(input_data:data, dtype=None)",
    ),
    "zeros": (
        _TENSOR,
        "torch.zeros(*size:shape, *, dtype=None, device=None)",
        "paddle.zeros(shape, dtype=None)",
        "mindspore.ops.zeros(size:shape, dtype=None)",
        "mindspore.mint.zeros(size:shape, *, dtype=None)",
    ),
    "zeros_like": (
        _TENSOR,
        "torch.zeros_like(input:tensor, *, dtype=None, device=None)",
        "paddle.zeros_like(x:tensor, dtype=None)",
        "mindspore.ops.zeros_like(input:tensor, *, dtype=None)",
        "mindspore.mint.zeros_like(input:tensor, *, dtype=None)",
    ),
}

METHODS = {
    "chunk": (
        "tensors",
        "torch mindspore: .chunk(chunks, dim:axis=0)",
        "paddle: .chunk(chunks, axis=0)",
    ),
    "mean": (
        "tensor",
        "torch: .mean(dim:axis=None, keepdim=False)",
        "paddle: .mean(axis=None, keepdim=False)",
        "mindspore: .mean(axis=None, keep_dims:keepdim=False)",
    ),
    "new_zeros": (
        "tensor",
        "torch: .new_zeros(*size:shape, *, dtype=None, device=None)",
        "paddle_3: .new_zeros(*size:shape, *, dtype=None)",
        "mindspore: .new_zeros(size:shape, *, dtype=None)",
    ),
    "new_empty": (
        "tensor",
        "torch: .new_empty(*size:shape, *, dtype=None, device=None)",
        "paddle_3: .new_empty(*size:shape, *, dtype=None)",
        "mindspore: .new_empty(size:shape, *, dtype=None)",
    ),
    "reshape": (
        "tensor",
        "torch mindspore: .reshape(*shape)",
        "paddle: .reshape(shape)",
    ),
    "split": (
        "tensors",
        "torch: .split(split_size:parts, dim:axis=0)",
        "paddle: .split(num_or_sections:parts, axis=0)",
        "mindspore: .split(split_size_or_sections:parts, axis=0)",
    ),
    "sum": (
        "tensor",
        "torch: .sum(dim:axis=None, keepdim=False, *, dtype=None)",
        "paddle: .sum(axis=None, dtype=None, keepdim=False)",
        "mindspore: .sum(axis=None, dtype=None, keepdims:keepdim=False)",
    ),
    "view": (
        "tensor",
        "torch mindspore: .view(*shape)",
        "paddle_3: .view(shape)",
        "paddle_2: .reshape(shape)",
    ),
}
