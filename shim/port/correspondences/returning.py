"""Functions that return a new tensor, and classes whose objects are called, MindSpore's primitives: each with the row of the functions that fill a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences.table import Form, form_of


@dataclass(frozen=True)
class Returning:
    """One function that returns what the functions of ``row`` write into their parameter of the role ``result``.

    ``made`` is how that tensor is made before the call: an expression in which ``{input}`` stands for the tensor that the function is given, ``{size}`` for
    the size of the group, ``{shape}`` for the shape that the function is given in place of an output. ``with_handle`` if it returns a pair of the tensor and the handle or None;
    ``has_gradient`` if gradients go through it.
    """

    row: str
    result: str
    form: Form
    made: str
    with_handle: bool
    has_gradient: bool


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


_COPY = "{input}.copy()"
_COMM_FUNC = "mindspore.communication.comm_func"

# Each: the row, the role of the result, the form, how the result is made; then whether it comes with a handle, and whether it has a gradient.
RETURNING: Mapping[str, tuple[tuple[str, str, str, str, bool, bool], ...]] = {
    "mindspore": (
        ("all_reduce", "tensor", f"{_COMM_FUNC}.all_reduce(tensor, op, group=None, background)", _COPY, True, True),
        ("broadcast", "tensor", f"{_COMM_FUNC}.broadcast(tensor, root, group=None)", _COPY, False, True),
        ("reduce", "tensor", f"{_COMM_FUNC}.reduce(tensor, root, op, group=None)", _COPY, False, True),
        (
            "all_gather_whole",
            "output",
            f"{_COMM_FUNC}.all_gather_into_tensor(input, group=None, background)",
            "{input}.new_zeros([{size} * {input}.shape[0], *{input}.shape[1:]])",
            True,
            True,
        ),
        (
            "reduce_scatter_whole",
            "output",
            f"{_COMM_FUNC}.reduce_scatter_tensor(input, op, group=None, background)",
            "{input}.new_zeros([{input}.shape[0] // {size}, *{input}.shape[1:]])",
            True,
            True,
        ),
        (
            "all_to_all_whole",
            "output",
            f"{_COMM_FUNC}.all_to_all_single_with_output_shape(output, input, output_splits, input_splits, group, background)",
            "{input}.new_zeros({shape})",
            True,
            True,
        ),
        ("receive", "tensor", f"{_COMM_FUNC}.recv(tensor, peer, group=None, tag)", _COPY, False, False),
        ("receive_in_background", "tensor", f"{_COMM_FUNC}.irecv(tensor, peer, group=None, tag)", _COPY, True, False),
    )
}

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


def returned(name: str, api: str) -> Returning | None:
    """Return what is known of the function *name* of *api*, a canonical path; None if it is none of these."""
    return _returning(api).get(name)


@cache
def _returning(api: str) -> Mapping[str, Returning]:
    found = {}
    for row, result, form, made, with_handle, has_gradient in RETURNING.get(APIS[api].framework, ()):
        known = Returning(row, result, form_of(form, api), made, with_handle, has_gradient)
        found[known.form.name] = known
    return found


def primitive(name: str, api: str) -> Primitive | None:
    """Return what is known of the class *name* of *api*, a canonical path; None if it is none of these."""
    return _primitives(api).get(name)


@cache
def _primitives(api: str) -> Mapping[str, Primitive]:
    found = {}
    for row, text, takes, body in PRIMITIVES.get(APIS[api].framework, ()):
        form = form_of(text, api)
        found[form.name] = Primitive(row, form, takes, body)
    return found
