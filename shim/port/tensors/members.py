"""Methods and attributes of tensors.

``METHODS`` have forms, as functions do. ``MEMBERS`` have templates: ``{tensor}`` is the tensor, other places are the arguments, all of which a call has
to give; what begins with a framework's name is a function.
"""

from __future__ import annotations

METHODS = {
    "chunk": (
        "tensors",
        "torch: .chunk(chunks, dim:axis=0)",
        "paddle: .chunk(chunks, axis=0)",
        "mindspore: .chunk(chunks, dim:axis=0)",
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
        "torch: .reshape(*shape)",
        "paddle: .reshape(shape)",
        "mindspore: .reshape(*shape)",
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
        "torch: .view(*shape)",
        "paddle_3: .view(shape)",
        "paddle_2: .reshape(shape)",
        "mindspore: .view(*shape)",
    ),
}

MEMBERS = {
    "T": ("tensor", "torch: {tensor}.T", "paddle: {tensor}.T", "mindspore: {tensor}.T"),
    "abs": ("tensor", "torch: {tensor}.abs()", "paddle: {tensor}.abs()", "mindspore: {tensor}.abs()"),
    "all": ("tensor", "torch: {tensor}.all()", "paddle: {tensor}.all()", "mindspore: {tensor}.all()"),
    "any": ("tensor", "torch: {tensor}.any()", "paddle: {tensor}.any()", "mindspore: {tensor}.any()"),
    "clone": (
        "tensor",
        "torch: {tensor}.clone()",
        "paddle: {tensor}.clone()",
        "mindspore: {tensor}.copy()",
        "mindspore: {tensor}.clone()",
    ),
    "contiguous": (
        "tensor",
        "torch: {tensor}.contiguous()",
        "paddle: {tensor}.contiguous()",
        "mindspore: {tensor}.contiguous()",
    ),
    "copy_": (
        "tensor",
        "torch: {tensor}.copy_({other})",
        "paddle: {tensor}.copy_({other})",
        "mindspore: {tensor}.copy_({other})",
    ),
    "cpu": ("tensor", "torch: {tensor}.cpu()", "paddle: {tensor}.cpu()"),
    "cuda": ("tensor", "torch: {tensor}.cuda()", "paddle: {tensor}.cuda()"),
    "detach": (
        "tensor",
        "torch: {tensor}.detach()",
        "paddle: {tensor}.detach()",
        "mindspore: mindspore.ops.stop_gradient({tensor})",
    ),
    "dtype": ("dtype", "torch: {tensor}.dtype", "paddle: {tensor}.dtype", "mindspore: {tensor}.dtype"),
    "flatten": ("tensor", "torch: {tensor}.flatten()", "paddle: {tensor}.flatten()", "mindspore: {tensor}.flatten()"),
    "float": (
        "tensor",
        "torch: {tensor}.float()",
        "paddle: {tensor}.astype('float32')",
        "mindspore: {tensor}.float()",
        "paddle_3: {tensor}.float()",
    ),
    "grad": ("tensor", "torch: {tensor}.grad", "paddle: {tensor}.grad"),
    "is_contiguous": (
        "flag",
        "torch: {tensor}.is_contiguous()",
        "paddle: {tensor}.is_contiguous()",
        "mindspore: {tensor}.is_contiguous()",
    ),
    "is_cuda": ("flag", "torch: {tensor}.is_cuda", "paddle_3: {tensor}.is_cuda"),
    "is_leaf": ("flag", "torch: {tensor}.is_leaf", "paddle: {tensor}.is_leaf"),
    "item": ("number", "torch: {tensor}.item()", "paddle: {tensor}.item()", "mindspore: {tensor}.item()"),
    "itemsize": (
        "number",
        "torch: {tensor}.itemsize",
        "paddle_3: {tensor}.itemsize",
        "mindspore: {tensor}.itemsize",
    ),
    "mT": ("tensor", "torch: {tensor}.mT", "paddle_3: {tensor}.mT", "mindspore: {tensor}.mT"),
    "max": ("tensor", "torch: {tensor}.max()", "paddle: {tensor}.max()", "mindspore: {tensor}.max()"),
    "max_along": (
        "tensor",
        "torch: {tensor}.max(dim={axis}).values",
        "paddle: {tensor}.max(axis={axis})",
        "mindspore: {tensor}.max(axis={axis})",
    ),
    "min": ("tensor", "torch: {tensor}.min()", "paddle: {tensor}.min()", "mindspore: {tensor}.min()"),
    "nbytes": ("number", "torch: {tensor}.nbytes", "mindspore: {tensor}.nbytes"),
    "ndim": (
        "number",
        "torch: {tensor}.ndim",
        "paddle: {tensor}.ndim",
        "mindspore: {tensor}.ndim",
        "torch: {tensor}.dim()",
        "mindspore: {tensor}.dim()",
    ),
    "numel": (
        "number",
        "torch: {tensor}.numel()",
        "paddle: {tensor}.size",
        "mindspore: {tensor}.size",
        "mindspore: {tensor}.numel()",
    ),
    "numpy": (
        "array",
        "torch: {tensor}.numpy()",
        "paddle: {tensor}.numpy()",
        "mindspore: {tensor}.asnumpy()",
        "mindspore: {tensor}.numpy()",
    ),
    "place": ("device", "torch: {tensor}.device", "paddle: {tensor}.place"),
    "requires_grad": (
        "flag",
        "torch: {tensor}.requires_grad",
        "paddle_2: (not {tensor}.stop_gradient)",
        "paddle_3: {tensor}.requires_grad",
    ),
    "shape": (
        "shape",
        "torch: {tensor}.shape",
        "paddle: {tensor}.shape",
        "mindspore: {tensor}.shape",
        "torch: {tensor}.size()",
    ),
    "size_along": (
        "number",
        "torch: {tensor}.size({axis})",
        "paddle: {tensor}.shape[{axis}]",
        "mindspore: {tensor}.shape[{axis}]",
    ),
    "squeeze": (
        "tensor",
        "torch: {tensor}.squeeze({axis})",
        "paddle: {tensor}.squeeze({axis})",
        "mindspore: {tensor}.squeeze({axis})",
    ),
    "stop_gradient": ("flag", "torch: (not {tensor}.requires_grad)", "paddle: {tensor}.stop_gradient"),
    "to_dtype": (
        "tensor",
        "torch: {tensor}.to({dtype})",
        "paddle: {tensor}.astype({dtype})",
        "mindspore: {tensor}.astype({dtype})",
        "mindspore: {tensor}.to({dtype})",
    ),
    "tolist": ("list", "torch: {tensor}.tolist()", "paddle: {tensor}.tolist()", "mindspore: {tensor}.tolist()"),
    "unsqueeze": (
        "tensor",
        "torch: {tensor}.unsqueeze({axis})",
        "paddle: {tensor}.unsqueeze({axis})",
        "mindspore: {tensor}.unsqueeze({axis})",
    ),
    "values": (
        "tensor",
        "torch: {tensor}.data",
        "paddle: {tensor}.detach()",
        "mindspore: mindspore.ops.stop_gradient({tensor})",
        "paddle: {tensor}.data",
        "mindspore: {tensor}.data",
    ),
}
