"""Variables of the source's launcher that a program reads from its environment, for a port onto the framework itself.

``shim run`` sets those of all launchers, so that a port onto a frontend may read on.
"""

from __future__ import annotations

import libcst as cst

from shim.port.rules.port import Port

_LAUNCHERS = {"torch": "torchrun", "paddle": "paddle.distributed.launch", "mindspore": "msrun"}
# What each launcher calls the same thing.
_SAME = (
    {"torch": "RANK", "paddle": "PADDLE_TRAINER_ID", "mindspore": "RANK_ID"},
    {"torch": "WORLD_SIZE", "paddle": "PADDLE_TRAINERS_NUM", "mindspore": "RANK_SIZE"},
    {"torch": "LOCAL_RANK", "paddle": "PADDLE_LOCAL_RANK", "mindspore": "DEVICE_ID"},
    {"torch": "LOCAL_WORLD_SIZE", "paddle": "PADDLE_LOCAL_SIZE"},
)
_BEGINNINGS = {
    "torch": ("GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "ROLE_", "TORCHELASTIC_"),
    "paddle": ("FLAGS_selected_", "PADDLE_"),
    "mindspore": ("MS_",),
}
_METHODS = ("get", "pop", "setdefault")


def report_launcher_variable(port: Port, node: cst.Subscript | cst.Call | cst.Comparison) -> None:
    """Report *node* if it reads or sets a variable that the source's launcher sets, and the target's does not."""
    source, target = port.source.framework, port.target.framework
    if port.plan.onto != "native" or source == target:
        return
    name = _variable(node)
    if name is None:
        return
    same = next((each for each in _SAME if each.get(source) == name), None)
    if same is None and not name.startswith(_BEGINNINGS[source]):
        return
    theirs = same and same.get(target)
    port.report(
        node,
        "left",
        "launcher-variable",
        f"{name} is a variable of {_LAUNCHERS[source]}, and {_LAUNCHERS[target]} does not know it",
        f"Use {theirs}."
        if theirs
        else "Ask the API, such as get_rank, or set the variable where you start the program.",
    )


def _variable(node: cst.Subscript | cst.Call | cst.Comparison) -> str | None:
    """Return the name for which *node* asks the environment, as ``os.environ["RANK"]`` does."""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        return _text(index.value) if isinstance(index, cst.Index) and _is_named(node.value, "environ") else None
    if isinstance(node, cst.Comparison):
        among = node.comparisons[0]
        is_in = isinstance(among.operator, (cst.In, cst.NotIn)) and _is_named(among.comparator, "environ")
        return _text(node.left) if is_in else None
    function = node.func
    is_method = (
        isinstance(function, cst.Attribute) and function.attr.value in _METHODS and _is_named(function.value, "environ")
    )
    return _text(node.args[0].value) if node.args and (is_method or _is_named(function, "getenv")) else None


def _is_named(node: cst.BaseExpression, name: str) -> bool:
    last = node.attr if isinstance(node, cst.Attribute) else node
    return isinstance(last, cst.Name) and last.value == name


def _text(node: cst.BaseExpression) -> str | None:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None
