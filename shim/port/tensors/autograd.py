"""Classes of functions with gradients of their own: torch's ``autograd.Function``, Paddle's ``PyLayer``, MindSpore's ``_Function``."""

from __future__ import annotations

import libcst as cst

from shim.port.plan import Left
from shim.port.reading.source_file import below
from shim.port.rules.port import Port

_OWN = """
mark_dirty mark_non_differentiable mark_not_inplace needs_input_grad set_materialize_grads
"""  # what a framework's context alone has


def port_autograd(port: Port, node: cst.ClassDef) -> None:
    """Port the class *node*: its base, its saved tensors, its gradients. Raises Left, and changes nothing, where its parts have no equivalent."""
    methods = {each.name.value: each for each in node.body.body if isinstance(each, cst.FunctionDef)}
    spare = sorted(methods.keys() - {"forward", "backward"})
    if spare or len(methods) != 2:
        raise Left(
            "autograd-class",
            f"{node.name.value} has {', '.join(spare) if spare else 'no forward and backward'}, which {port.target.framework} has not in this form",
            "Have forward and backward alone, or write the class by hand.",
        )
    forward, backward = methods["forward"], methods["backward"]
    uses = [use for method in (forward, backward) for use in _uses_of_context(method)]
    strange = sorted({use.attr.value for use in uses} & {*_OWN.split()})
    if strange:
        raise Left(
            "autograd-class",
            f"{node.name.value} uses {', '.join(strange)} of its port, which {port.target.framework} has not in this form",
            "Write by hand what it is for.",
        )
    inputs = [each.name for each in forward.params.params[1:]]
    if forward.params.star_kwarg is not None or isinstance(forward.params.star_arg, cst.Param):
        raise Left("autograd-class", f"forward of {node.name.value} takes any number of inputs", "Name its inputs.")
    _Gradients(port, inputs).port(forward, backward)
    for use in uses:
        _port_saved(port, use)


def _port_saved(port: Port, use: cst.Attribute) -> None:
    """Port the saved tensors, which are an attribute or, in Paddle, what a method returns."""
    end = port.file.span(use.attr)
    if use.attr.value == "saved_tensors" and port.target.framework == "paddle":
        port.edits.replace(*end, "saved_tensor()")
    elif use.attr.value == "saved_tensor" and port.target.framework != "paddle":
        after = port.file.text[end.end : end.end + 2]
        port.edits.replace(end.start, end.end + (2 if after == b"()" else 0), "saved_tensors")


class _Gradients:
    """Backward's results: a gradient for each input or, in Paddle, for each that is a tensor."""

    def __init__(self, port: Port, inputs: list[cst.Name]) -> None:
        self._port = port
        self.inputs = inputs

    def port(self, forward: cst.FunctionDef, backward: cst.FunctionDef) -> None:
        ours, theirs = self._port.source.framework == "paddle", self._port.target.framework == "paddle"
        if theirs and not ours:
            for value in _returned(backward.body):
                self._leave_out(value)
            for value in _returned(forward.body):
                self._clone(value)
        elif ours and not theirs:
            for value in _returned(backward.body):
                self._fill_up(value)

    def _leave_out(self, value: cst.BaseExpression) -> None:
        """Take out None for each input that is no tensor."""
        if not isinstance(value, cst.Tuple) or len(value.elements) != len(self.inputs):
            return
        kept, edits = [], self._port.edits
        for element, name in zip(value.elements, self.inputs, strict=True):
            kind = self._port.tensors.of(name)
            if self._port.file.code(element.value) != "None" or kind == "tensor":
                kept.append(element)
            elif kind is None:
                self._not_certain(element, name)
        if len(kept) == len(value.elements) or not kept:
            return
        spans = [self._port.file.span(each.value) for each in value.elements]
        last = max(position for position, each in enumerate(value.elements) if each in kept)
        for position, each in enumerate(value.elements):
            if each not in kept and position < last:
                edits.remove(spans[position].start, spans[position + 1].start)
        if last < len(spans) - 1:
            edits.remove(self._port.file.outer_span(value.elements[last].value).end, spans[-1].end)
        self._port.places += 1

    def _fill_up(self, value: cst.BaseExpression) -> None:
        """Add None for the inputs at the end, which are no tensors."""
        given = len(value.elements) if isinstance(value, cst.Tuple) else 1
        missing = self.inputs[given:]
        if not missing:
            return
        if any(self._port.tensors.of(name) == "tensor" for name in missing):
            raise Left(
                "autograd-class", "an input that is no tensor stands before one that is", "Have the tensors come first."
            )
        for name in missing:
            if self._port.tensors.of(name) is None:
                self._not_certain(value, name)
        end = self._port.file.outer_span(value).end - (1 if isinstance(value, cst.Tuple) and value.rpar else 0)
        self._port.edits.insert_after(end, ", None" * len(missing))
        self._port.places += 1

    def _not_certain(self, node: cst.CSTNode, name: cst.Name) -> None:
        self._port.changed(
            node,
            "gradient-of-input",
            f"{name.value} was taken for an input that is no tensor, which has no gradient in Paddle and None elsewhere",
            "Annotate it if it is a tensor, and port again.",
        )

    def _clone(self, value: cst.BaseExpression) -> None:
        """Return a copy of an input, where forward returns it itself: Paddle takes that for an operation in place."""
        if isinstance(value, cst.Name) and value.value in {name.value for name in self.inputs}:
            self._port.edits.insert_after(self._port.file.span(value).end, ".clone()")


def _uses_of_context(method: cst.FunctionDef) -> list[cst.Attribute]:
    if not method.params.params:
        return []
    name, nodes = method.params.params[0].name.value, below(method.body)
    attributes = [each for each in nodes if isinstance(each, cst.Attribute)]
    return [each for each in attributes if isinstance(each.value, cst.Name) and each.value.value == name]


def _returned(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """Return the values that statements in *node* return, those of functions in it left out."""
    if isinstance(node, cst.Return):
        return [] if node.value is None else [node.value]
    inner = (each for each in node.children if not isinstance(each, cst.FunctionDef))
    return [value for each in inner for value in _returned(each)]
