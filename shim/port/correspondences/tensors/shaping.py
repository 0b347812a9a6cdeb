"""Tensors joined, split, turned and repeated, and given another shape."""

from __future__ import annotations

FUNCTIONS = {
    "cat": (
        "torch.cat(tensors, dim:axis=0)",
        "paddle.concat(x:tensors, axis=0)",
        "mindspore.ops.cat(tensors, axis=0)",
        "torch.concat(tensors, dim:axis=0)",
        "mindspore.mint.cat(tensors, dim:axis=0)",
        "mindspore.mint.concat(tensors, dim:axis=0)",
        "mindspore.ops.concat(tensors, axis=0)",
    ),
    "chunk": (
        "tensors",
        "torch.chunk(input:tensor, chunks, dim:axis=0)",
        "paddle.chunk(x:tensor, chunks, axis=0)",
        "mindspore.ops.chunk(input:tensor, chunks, axis=0)",
        "mindspore.mint.chunk(input:tensor, chunks, dim:axis=0)",
    ),
    "flatten": (
        "torch.flatten(input:tensor, start_dim:start=0, end_dim:end=-1)",
        "paddle.flatten(x:tensor, start_axis:start=0, stop_axis:end=-1)",
        "mindspore.ops.flatten(input:tensor, *, start_dim:start=1, end_dim:end=-1)",
    ),
    "flip": (
        "torch.flip(input:tensor, dims:axes)",
        "paddle.flip(x:tensor, axis:axes)",
        "mindspore.ops.flip(input:tensor, dims:axes)",
    ),
    "pad": (
        "torch.nn.functional.pad(input:tensor, pad, mode='constant', value=None)",
        "paddle_3: paddle.nn.functional.pad(x:tensor, pad, mode='constant', value=0.0, data_format=None, pad_from_left_axis:first_axis_first=True)",
        "paddle_2: paddle.nn.functional.pad(x:tensor, pad, mode='constant', value=0.0, data_format='NCHW')",
        "mindspore.ops.pad(input_x:tensor, padding:pad, mode='constant', value=None)",
        "mindspore.mint.nn.functional.pad(input:tensor, pad, mode='constant', value=None)",
    ),
    "permute": (
        "torch.permute(input:tensor, dims:order)",
        "paddle.transpose(x:tensor, perm:order)",
        "mindspore.ops.permute(input:tensor, axis:order)",
    ),
    "repeat_interleave": (
        "torch.repeat_interleave(input:tensor, repeats, dim:axis=None)",
        "paddle.repeat_interleave(x:tensor, repeats, axis=None)",
        "mindspore.ops.repeat_interleave(input:tensor, repeats, axis=None)",
    ),
    "reshape": (
        "torch.reshape(input:tensor, shape)",
        "paddle.reshape(x:tensor, shape)",
        "mindspore.ops.reshape(input:tensor, shape)",
        "mindspore.mint.reshape(input:tensor, shape)",
    ),
    "roll": (
        "torch.roll(input:tensor, shifts, dims:axes=None)",
        "paddle.roll(x:tensor, shifts, axis:axes=None)",
        "mindspore.numpy.roll(a:tensor, shift:shifts, axis:axes=None)",
    ),
    "split": (
        "tensors",
        "torch.split(tensor, split_size_or_sections:parts, dim:axis=0)",
        "paddle.split(x:tensor, num_or_sections:parts, axis=0)",
        "mindspore.ops.split(tensor, split_size_or_sections:parts, axis=0)",
        "mindspore.mint.split(tensor, split_size_or_sections:parts, dim:axis=0)",
    ),
    "squeeze": (
        "torch.squeeze(input:tensor, dim:axis=None)",
        "paddle.squeeze(x:tensor, axis=None)",
        "mindspore.ops.squeeze(input:tensor, axis=None)",
    ),
    "stack": (
        "torch.stack(tensors, dim:axis=0)",
        "paddle.stack(x:tensors, axis=0)",
        "mindspore.ops.stack(tensors, axis=0)",
        "mindspore.mint.stack(tensors, dim:axis=0)",
    ),
    "swapaxes": (
        "torch.transpose(input:tensor, dim0:axis, dim1:second_axis)",
        "paddle.swapaxes(x:tensor, axis0:axis, axis1:second_axis)",
        "mindspore.ops.swapaxes(input:tensor, axis0:axis, axis1:second_axis)",
        "torch.swapaxes(input:tensor, axis0:axis, axis1:second_axis)",
    ),
    "tile": (
        "torch.tile(input:tensor, dims:repeats)",
        "paddle.tile(x:tensor, repeat_times:repeats)",
        "mindspore.ops.tile(input:tensor, dims:repeats)",
    ),
    "unbind": (
        "tensors",
        "torch.unbind(input:tensor, dim:axis=0)",
        "paddle.unbind(input:tensor, axis=0)",
        "mindspore.ops.unbind(input:tensor, dim:axis=0)",
    ),
    "unsqueeze": (
        "torch.unsqueeze(input:tensor, dim:axis)",
        "paddle.unsqueeze(x:tensor, axis)",
        "mindspore.ops.unsqueeze(input:tensor, dim:axis)",
    ),
}

METHODS = {
    "chunk": ("tensors", "torch mindspore: .chunk(chunks, dim:axis=0)", "paddle: .chunk(chunks, axis=0)"),
    "expand": (
        "torch: .expand(*size:shape)",
        "paddle: .expand(shape)",
        "mindspore: .broadcast_to(shape)",
        "mindspore: .expand(shape)",
    ),
    "flatten": (
        "torch: .flatten(start_dim:start=0, end_dim:end=-1)",
        "paddle: .flatten(start_axis:start=0, stop_axis:end=-1)",
        "mindspore: .flatten(*, start_dim:start=0, end_dim:end=-1)",
    ),
    "flip": ("torch: .flip(*dims:shape)", "paddle: .flip(axis:shape)", "mindspore: .flip(dims:shape)"),
    "narrow": ("torch: .narrow(dim:axis, start, length)", "mindspore: .narrow(dim:axis, start, length)"),
    "permute": ("torch mindspore: .permute(*dims:shape)", "paddle: .transpose(perm:shape)"),
    "repeat": ("torch: .repeat(*sizes:shape)", "paddle: .tile(repeat_times:shape)", "mindspore: .tile(reps:shape)"),
    "reshape": ("torch mindspore: .reshape(*shape)", "paddle: .reshape(shape)"),
    "unsqueeze": ("torch: .unsqueeze(dim:axis)", "paddle: .unsqueeze(axis)", "mindspore: .unsqueeze(dim:axis)"),
    "squeeze": ("torch: .squeeze(dim:axis=None)", "paddle mindspore: .squeeze(axis=None)"),
    "split": (
        "tensors",
        "torch: .split(split_size:parts, dim:axis=0)",
        "paddle: .split(num_or_sections:parts, axis=0)",
        "mindspore: .split(split_size_or_sections:parts, axis=0)",
    ),
    "swapaxes": (
        "torch: .transpose(dim0:axis, dim1:second_axis)",
        "paddle: .swapaxes(axis0:axis, axis1:second_axis)",
        "mindspore: .swapaxes(axis0:axis, axis1:second_axis)",
        "torch: .swapaxes(axis0:axis, axis1:second_axis)",
    ),
    "unbind": ("tensors", "torch mindspore: .unbind(dim:axis=0)", "paddle: .unbind(axis=0)"),
    "view": ("torch mindspore: .view(*shape)", "paddle_3: .view(shape)", "paddle_2: .reshape(shape)"),
}

DIFFERENCES: dict[str, tuple[str, ...]] = {}
