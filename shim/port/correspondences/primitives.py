"""MindSpore's primitives: classes whose objects are called, each with the row of the functions that do the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences.forms import Form, form_of


@dataclass(frozen=True)
class Primitive:
    """A class of which ``form`` is the constructor, and the function to write for an object of it.

    ``takes`` is the function's parameter, empty where the object is called without arguments. ``body`` are its statements, in which ``{call}`` stands for the
    function of ``row``, ``{rest}`` for the arguments that the object has kept, ``{size}`` for the size of the group.
    """

    row: str
    form: Form
    takes: str
    body: tuple[str, ...]

    @property
    def has_gradient(self) -> bool:
        return bool(self.takes)


_IN_PLACE = ("result = tensor.copy()", "{call}(result{rest})", "return result")
_OPS = "mindspore.ops"

PRIMITIVES: Mapping[str, tuple[tuple[str, str, str, tuple[str, ...]], ...]] = {
    "mindspore": (
        ("all_reduce", f"{_OPS}.AllReduce(op, group=None)", "tensor", _IN_PLACE),
        ("reduce", f"{_OPS}.Reduce(group_root, op, group=None)", "tensor", _IN_PLACE),
        (
            "broadcast",
            f"{_OPS}.Broadcast(group_root, group=None)",
            "tensors",
            (
                "results = tuple(tensor.copy() for tensor in tensors)",
                "for result in results:",
                "    {call}(result{rest})",
                "return results",
            ),
        ),
        (
            "all_gather_whole",
            f"{_OPS}.AllGather(group=None)",
            "tensor",
            (
                "result = tensor.new_zeros([{size} * tensor.shape[0], *tensor.shape[1:]])",
                "{call}(result, tensor{rest})",
                "return result",
            ),
        ),
        (
            "reduce_scatter_whole",
            f"{_OPS}.ReduceScatter(op, group=None)",
            "tensor",
            (
                "result = tensor.new_zeros([tensor.shape[0] // {size}, *tensor.shape[1:]])",
                "{call}(result, tensor{rest})",
                "return result",
            ),
        ),
        ("barrier", f"{_OPS}.Barrier(group=None)", "", ("{call}({rest})",)),
    )
}


def primitive(name: str, api: str) -> Primitive | None:
    """Return what is known of the class *name* of *api*, a canonical path; None if it is none of these."""
    return _by_name(api).get(name)


@cache
def _by_name(api: str) -> Mapping[str, Primitive]:
    found = {}
    for row, text, takes, body in PRIMITIVES.get(APIS[api].framework, ()):
        form = form_of(text, api)
        found[form.name] = Primitive(row, form, takes, body)
    return found
