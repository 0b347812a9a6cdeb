"""The names of MindSpore that its frontend does not have, and why."""

from __future__ import annotations

from shim.frontends._absent import ANY, Absent, by_name

_IF_MINDSPORE_HAS_IT = "If MindSpore has it, import it from mindspore itself, which works beside the frontend."
_APART = {ANY: Absent("does not communicate, or needs groups of MindSpore's own", _IF_MINDSPORE_HAS_IT)}
_OPERATORS = {ANY: Absent("is none of MindSpore's communication operators", _IF_MINDSPORE_HAS_IT)}
_INSIDE = Absent(
    "is a part of how MindSpore keeps its groups; the frontend keeps its own",
    "It needs groups of MindSpore's own: use it in a program that calls mindspore.communication.init itself.",
)

ABSENT = {
    "": _APART,
    "communication": by_name({_INSIDE: ("_comm_helper",)}),
    "mint": _OPERATORS,
    "mint.distributed": by_name({_INSIDE: ("_utils",)}),
    "nn": _APART,
    "ops": _OPERATORS,
    "ops.operations": _OPERATORS,
    "ops.operations.comm_ops": _OPERATORS,
}
