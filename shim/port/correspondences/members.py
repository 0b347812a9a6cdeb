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

# What has an operator: its name in torch and MindSpore, the operator, and its name in Paddle.
_OPERATORS = """
add + add       sub - subtract       mul * multiply       div / divide
eq == equal     ne != not_equal      gt > greater_than    ge >= greater_equal    lt < less_than    le <= less_equal
"""
_WORDS = _OPERATORS.split()
_TRIPLES = [*zip(_WORDS[::3], _WORDS[1::3], _WORDS[2::3], strict=True)]

# A row of what is no tensor begins with its kind.
TENSOR_MEMBERS: Mapping[str, tuple[str, ...]] = {
    **{
        name: (
            f"torch mindspore: {{tensor}}.{name}({{other}})",
            f"paddle: ({{tensor}} {operator} {{other}})",
            f"torch: torch.{name}({{tensor}}, {{other}})",
            f"mindspore: mindspore.ops.{name}({{tensor}}, {{other}})",
            f"paddle: {{tensor}}.{of_paddle}({{other}})",
            f"paddle: paddle.{of_paddle}({{tensor}}, {{other}})",
        )
        for name, operator, of_paddle in _TRIPLES
    },
    **{
        f"{name}_": (
            f"torch: {{tensor}}.{name}_({{other}})",
            f"paddle mindspore: {{tensor}}.copy_({{tensor}} {operator} {{other}})",
            f"paddle: {{tensor}}.{of_paddle}_({{other}})",
            f"mindspore: {{tensor}}.{name}_({{other}})",
        )
        for name, operator, of_paddle in _TRIPLES[:4]
    },
    "T": ("{tensor}.T",),
    "clone": ("torch paddle: {tensor}.clone()", "mindspore: {tensor}.copy()", "mindspore: {tensor}.clone()"),
    "contiguous": ("{tensor}.contiguous()",),
    # On CPUs MindSpore 2.10's copy_ raises RuntimeError where it copies from a view that begins where a larger tensor does.
    "copy_": (
        "torch paddle: {tensor}.copy_({other})",
        "mindspore: {tensor}.copy_({other}.copy())",
        "mindspore: {tensor}.copy_({other})",
    ),
    "cpu": ("torch paddle: {tensor}.cpu()",),
    "cuda": ("torch paddle: {tensor}.cuda()",),
    "detach": ("torch paddle: {tensor}.detach()", "mindspore: mindspore.ops.stop_gradient({tensor})"),
    "double": (
        "torch: {tensor}.double()",
        "paddle: {tensor}.astype('float64')",
        "mindspore: {tensor}.astype(mindspore.float64)",
    ),
    "dtype": ("dtype", "{tensor}.dtype"),
    "equal": (
        "flag",
        "torch: torch.equal({tensor}, {other})",
        "paddle: paddle.equal_all({tensor}, {other}).item()",
        "mindspore: ({tensor}.shape == {other}.shape and mindspore.ops.equal({tensor}, {other}).all().item())",
    ),
    "expand_as": ("{tensor}.expand_as({other})",),
    "fill_": (
        "torch paddle: {tensor}.fill_({other})",
        "mindspore: {tensor}.copy_(mindspore.ops.full_like({tensor}, {other}))",
    ),
    "float": ("torch mindspore: {tensor}.float()", "paddle: {tensor}.astype('float32')", "paddle_3: {tensor}.float()"),
    "grad": ("torch paddle: {tensor}.grad",),
    "is_contiguous": ("flag", "{tensor}.is_contiguous()"),
    "is_cuda": ("flag", "torch paddle_3: {tensor}.is_cuda"),
    "is_tensor": (
        "flag",
        "torch: torch.is_tensor({tensor})",
        "paddle: paddle.is_tensor({tensor})",
        "mindspore: mindspore.ops.is_tensor({tensor})",
    ),
    **{
        name: (
            "flag",
            f"torch: torch.{name}({{tensor}})",
            f"paddle: paddle.{name}({{tensor}})",
            f"mindspore: mindspore.ops.{name}({{tensor}})",
            f"torch mindspore: {{tensor}}.{name}()",
        )
        for name in ("is_complex", "is_floating_point")
    },
    "is_leaf": ("flag", "torch paddle: {tensor}.is_leaf"),
    "item": ("number", "{tensor}.item()"),
    "itemsize": ("number", "torch paddle_3 mindspore: {tensor}.itemsize"),
    "linear": (
        "torch: torch.nn.functional.linear({tensor}, {other})",
        "paddle: paddle.matmul({tensor}, {other}.T)",
        "mindspore: mindspore.ops.dense({tensor}, {other})",
    ),
    "mT": ("torch paddle_3 mindspore: {tensor}.mT",),
    "max": ("{tensor}.max()",),
    "max_along": ("torch: {tensor}.max(dim={axis}).values", "paddle mindspore: {tensor}.max(axis={axis})"),
    "min": ("{tensor}.min()",),
    "nbytes": ("number", "torch mindspore: {tensor}.nbytes"),
    "ndim": ("number", "{tensor}.ndim", "torch mindspore: {tensor}.dim()"),
    "numel": ("number", "torch: {tensor}.numel()", "paddle mindspore: {tensor}.size", "mindspore: {tensor}.numel()"),
    "numpy": ("array", "mindspore: {tensor}.asnumpy()", "{tensor}.numpy()"),
    "normalize": (
        "torch: torch.nn.functional.normalize({tensor}, dim={axis})",
        "paddle: paddle.nn.functional.normalize({tensor}, axis={axis})",
        "mindspore: ({tensor} / mindspore.ops.clamp(mindspore.ops.norm({tensor}, dim={axis}, keepdim=True), 1e-12))",
    ),
    "place": ("device", "torch: {tensor}.device", "paddle: {tensor}.place"),
    "requires_grad": ("flag", "torch paddle_3: {tensor}.requires_grad", "paddle_2: (not {tensor}.stop_gradient)"),
    "shape": ("shape", "{tensor}.shape", "torch: {tensor}.size()"),
    "size_along": ("number", "torch: {tensor}.size({axis})", "paddle mindspore: {tensor}.shape[{axis}]"),
    "stop_gradient": ("flag", "torch: (not {tensor}.requires_grad)", "paddle: {tensor}.stop_gradient"),
    "t": ("{tensor}.t()",),
    "to_dtype": ("paddle mindspore: {tensor}.astype({dtype})", "torch mindspore: {tensor}.to({dtype})"),
    "type_as": ("torch mindspore: {tensor}.type_as({other})", "paddle: {tensor}.astype({other}.dtype)"),
    "tolist": ("list", "{tensor}.tolist()"),
    "view_as": ("{tensor}.view_as({other})",),
    "zero_": ("torch paddle: {tensor}.zero_()", "mindspore: {tensor}.copy_(mindspore.ops.zeros_like({tensor}))"),
    "values": (
        "torch: {tensor}.data",
        "paddle: {tensor}.detach()",
        "mindspore: mindspore.ops.stop_gradient({tensor})",
        "paddle mindspore: {tensor}.data",
    ),
    **{
        name: (f"torch mindspore: {{tensor}}.{name}()", f"paddle: {{tensor}}.astype('{dtype}')")
        for name, dtype in (("bool", "bool"), ("int", "int32"), ("long", "int64"), ("half", "float16"))
    },
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
