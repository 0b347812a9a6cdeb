"""Elements taken by indices or masks, and written by them."""

from __future__ import annotations

# MindSpore 2.10's own scatter is not written: on CPUs it is wrong after a call with other shapes.
_SCATTER = "mindspore.ops.tensor_scatter_elements(input_x:tensor, indices:index, updates:source, axis)"
_SCATTER_ADD = (
    "mindspore.ops.tensor_scatter_elements(input_x:tensor, indices:index, updates:source, axis, reduction:!'add')"
)

FUNCTIONS = {
    "gather": (
        "torch.gather(input:tensor, dim:axis, index)",
        "paddle.take_along_axis(arr:tensor, indices:index, axis, broadcast:!False)",
        "mindspore.ops.gather_elements(input:tensor, dim:axis, index)",
    ),
    "index_add": (
        "torch.index_add(input:tensor, dim:axis, index, source)",
        "paddle.index_add(x:tensor, index, axis, value:source)",
    ),
    "index_select": (
        "torch.index_select(input:tensor, dim:axis, index)",
        "paddle.index_select(x:tensor, index, axis=0)",
        "mindspore.ops.index_select(input:tensor, axis, index)",
    ),
    "isin": ("torch.isin(elements:tensor, test_elements:other)", "paddle.isin(x:tensor, test_x:other)"),
    "masked_select": (
        "torch.masked_select(input:tensor, mask)",
        "paddle.masked_select(x:tensor, mask)",
        "mindspore.ops.masked_select(input:tensor, mask)",
    ),
    "nonzero": ("torch.nonzero(input:tensor)", "paddle.nonzero(x:tensor)", "mindspore.ops.nonzero(input:tensor)"),
    "scatter": (
        "torch.scatter(input:tensor, dim:axis, index, src:source)",
        "paddle.put_along_axis(arr:tensor, indices:index, values:source, axis, *, broadcast:!False)",
        _SCATTER,
        "mindspore.ops.scatter(input:tensor, axis, index, src:source)",
    ),
    "scatter_add": (
        "torch.scatter_add(input:tensor, dim:axis, index, src:source)",
        "paddle.put_along_axis(arr:tensor, indices:index, values:source, axis, *, reduce:!'add', broadcast:!False)",
        _SCATTER_ADD,
    ),
    "tril": (
        "torch.tril(input:tensor, diagonal=0)",
        "paddle.tril(x:tensor, diagonal=0)",
        "mindspore.ops.tril(input:tensor, diagonal=0)",
    ),
    "triu": (
        "torch.triu(input:tensor, diagonal=0)",
        "paddle.triu(x:tensor, diagonal=0)",
        "mindspore.ops.triu(input:tensor, diagonal=0)",
    ),
}

METHODS = {
    "gather": (
        "torch mindspore: .gather(dim:axis, index)",
        "paddle: .take_along_axis(indices:index, axis, broadcast:!False)",
    ),
    "index_add": ("torch: .index_add(dim:axis, index, source)", "paddle: .index_add(index, axis, value:source)"),
    "index_select": (
        "torch: .index_select(dim:axis, index)",
        "paddle: .index_select(index, axis=0)",
        "mindspore: .index_select(axis, index)",
    ),
    "masked_select": ("torch paddle mindspore: .masked_select(mask)",),
    "nonzero": ("torch paddle mindspore: .nonzero()",),
    "scatter": (
        "torch: .scatter(dim:axis, index, src:source)",
        "paddle: .put_along_axis(indices:index, values:source, axis, *, broadcast:!False)",
        _SCATTER,
        "mindspore: .scatter(axis, index, src:source)",
    ),
    "scatter_": (
        "torch: .scatter_(dim:axis, index, src:source)",
        "paddle: .put_along_axis_(indices:index, values:source, axis, *, broadcast:!False)",
        f"mindspore: ={_SCATTER}",
    ),
    "scatter_add": (
        "torch: .scatter_add(dim:axis, index, src:source)",
        "paddle: .put_along_axis(indices:index, values:source, axis, *, reduce:!'add', broadcast:!False)",
        _SCATTER_ADD,
    ),
    "scatter_add_": (
        "torch: .scatter_add_(dim:axis, index, src:source)",
        "paddle: .put_along_axis_(indices:index, values:source, axis, *, reduce:!'add', broadcast:!False)",
        f"mindspore: ={_SCATTER_ADD}",
    ),
    "tril": ("torch paddle mindspore: .tril(diagonal=0)",),
    "triu": ("torch paddle mindspore: .triu(diagonal=0)",),
}

DIFFERENCES: dict[str, tuple[str, ...]] = {}
