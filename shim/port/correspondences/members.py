"""What a group or a tensor has as a method or an attribute here, and by a function or in other words there: a template for each API.

``{group}`` and ``{tensor}`` are what has the member, other places are the arguments, all of which a call has to give. What begins with a framework's name
is a function. The first template of an API is the one that a port writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from shim.port.correspondences.forms import said_of

GROUP_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "size": (
        "torch: {group}.size()",
        "paddle: {group}.nranks",
        "mindspore: mindspore.mint.distributed.get_world_size({group})",
        "paddle: {group}.world_size",
    ),
    "rank": (
        "torch: {group}.rank()",
        "paddle: {group}.rank",
        "mindspore: mindspore.mint.distributed.get_rank({group})",
    ),
    "ranks_of": (
        "torch: torch.distributed.get_process_group_ranks({group})",
        "paddle: {group}.ranks",
        "mindspore: mindspore.mint.distributed.get_process_group_ranks({group})",
    ),
    "rank_in_group": (
        "torch: torch.distributed.get_group_rank({group}, {rank})",
        "paddle: {group}.get_group_rank({rank})",
        "mindspore: mindspore.mint.distributed.get_group_rank({group}, {rank})",
    ),
    "rank_in_world": (
        "torch: torch.distributed.get_global_rank({group}, {rank})",
        "paddle_2: {group}.ranks[{rank}]",
        "paddle_3: {group}.get_global_rank({rank})",
        "mindspore: mindspore.mint.distributed.get_global_rank({group}, {rank})",
    ),
}

# Before the templates stands the kind of what the member is.
TENSOR_MEMBERS: Mapping[str, tuple[str, ...]] = {
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


def member_for(row: str, api: str) -> str | None:
    """Return how *api* writes what *row* of a group is; None where it has nothing for it."""
    return next(iter(said_of(GROUP_MEMBERS.get(row, ()), api)), None)


def templates_of(row: str, api: str) -> Sequence[str]:
    """Return how *api* writes the member *row* of a tensor, the first to be written."""
    return [template for each, template in tensor_templates(api) if each == row]


@cache
def group_templates(api: str) -> Sequence[tuple[str, str]]:
    """Return all templates that *api* has of groups' members, each with its row before it."""
    return [(row, template) for row, texts in GROUP_MEMBERS.items() for template in said_of(texts, api)]


@cache
def tensor_templates(api: str) -> Sequence[tuple[str, str]]:
    """Return all templates that *api* has of tensors' members, each with its row before it."""
    return [(row, template) for row, texts in TENSOR_MEMBERS.items() for template in said_of(texts, api)]
