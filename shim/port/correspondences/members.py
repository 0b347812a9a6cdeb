"""What a group or a tensor has as a method or an attribute here, and by a function or in other words there: a template for each API.

``{group}`` and ``{tensor}`` are what has the member, other places are the arguments, all of which a call has to give. What begins with a framework's name
is a function. Before a template stand the APIs or frameworks that write it so; all do where none stands there. The first template of an API is the one that a port writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from shim.port.correspondences.table import said_of

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
    "T": ("tensor", "{tensor}.T"),
    "abs": ("tensor", "{tensor}.abs()"),
    "all": ("tensor", "{tensor}.all()"),
    "any": ("tensor", "{tensor}.any()"),
    "clone": ("tensor", "torch paddle: {tensor}.clone()", "mindspore: {tensor}.copy()", "mindspore: {tensor}.clone()"),
    "contiguous": ("tensor", "{tensor}.contiguous()"),
    "copy_": ("tensor", "{tensor}.copy_({other})"),
    "cpu": ("tensor", "torch paddle: {tensor}.cpu()"),
    "cuda": ("tensor", "torch paddle: {tensor}.cuda()"),
    "detach": ("tensor", "torch paddle: {tensor}.detach()", "mindspore: mindspore.ops.stop_gradient({tensor})"),
    "dtype": ("dtype", "{tensor}.dtype"),
    "flatten": ("tensor", "{tensor}.flatten()"),
    "float": (
        "tensor",
        "torch mindspore: {tensor}.float()",
        "paddle: {tensor}.astype('float32')",
        "paddle_3: {tensor}.float()",
    ),
    "grad": ("tensor", "torch paddle: {tensor}.grad"),
    "is_contiguous": ("flag", "{tensor}.is_contiguous()"),
    "is_cuda": ("flag", "torch paddle_3: {tensor}.is_cuda"),
    "is_leaf": ("flag", "torch paddle: {tensor}.is_leaf"),
    "item": ("number", "{tensor}.item()"),
    "itemsize": ("number", "torch paddle_3 mindspore: {tensor}.itemsize"),
    "mT": ("tensor", "torch paddle_3 mindspore: {tensor}.mT"),
    "max": ("tensor", "{tensor}.max()"),
    "max_along": ("tensor", "torch: {tensor}.max(dim={axis}).values", "paddle mindspore: {tensor}.max(axis={axis})"),
    "min": ("tensor", "{tensor}.min()"),
    "nbytes": ("number", "torch mindspore: {tensor}.nbytes"),
    "ndim": ("number", "{tensor}.ndim", "torch mindspore: {tensor}.dim()"),
    "numel": ("number", "torch: {tensor}.numel()", "paddle mindspore: {tensor}.size", "mindspore: {tensor}.numel()"),
    "numpy": ("array", "mindspore: {tensor}.asnumpy()", "{tensor}.numpy()"),
    "place": ("device", "torch: {tensor}.device", "paddle: {tensor}.place"),
    "requires_grad": ("flag", "torch paddle_3: {tensor}.requires_grad", "paddle_2: (not {tensor}.stop_gradient)"),
    "shape": ("shape", "{tensor}.shape", "torch: {tensor}.size()"),
    "size_along": ("number", "torch: {tensor}.size({axis})", "paddle mindspore: {tensor}.shape[{axis}]"),
    "squeeze": ("tensor", "{tensor}.squeeze({axis})"),
    "stop_gradient": ("flag", "torch: (not {tensor}.requires_grad)", "paddle: {tensor}.stop_gradient"),
    "to_dtype": ("tensor", "paddle mindspore: {tensor}.astype({dtype})", "torch mindspore: {tensor}.to({dtype})"),
    "tolist": ("list", "{tensor}.tolist()"),
    "unsqueeze": ("tensor", "{tensor}.unsqueeze({axis})"),
    "values": (
        "tensor",
        "torch: {tensor}.data",
        "paddle: {tensor}.detach()",
        "mindspore: mindspore.ops.stop_gradient({tensor})",
        "paddle mindspore: {tensor}.data",
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
