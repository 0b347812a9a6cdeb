"""Values of the API that a program keeps or passes on, where the target's are others: modules, handles, groups of other ranks, names in strings; and
variables of the source's launcher that it reads from its environment.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst
from libcst import matchers

from shim.port.correspondences.table import rows_with
from shim.port.reading.expressions import discarded, flag_of, passed
from shim.port.reading.groups import FOUND, Kinds
from shim.port.rules.port import Port
from shim.port.rules.spelling import is_module

_DOTTED = re.compile(r"\w+(\.\w+)+")
_LAUNCHERS = (".launch", ".run")  # modules that are started, which is for launch lines
BY_NAME = ("getattr", "hasattr", "setattr", "delattr", "vars", "dir")  # functions that are given a module and a name
_HANDLES_OF_TORCH = """
block_current_stream exception get_future is_completed is_success result source_rank synchronize wait
"""
_HANDLES = {
    "torch": frozenset(_HANDLES_OF_TORCH.split()),
    "paddle": frozenset(("is_completed", "is_sync", "synchronize", "wait")),
    "mindspore": frozenset(("wait",)),
}
_NAMES_OF_HANDLES = ("block_current_stream", "get_future", "is_completed", "is_success", "is_sync", "source_rank")
_SIZE_OF_OTHERS = "mindspore.communication.get_group_size"
_STARTING = ("send_in_background", "receive_in_background")


def report_values(port: Port) -> None:
    """Report the places of the file at which such a value is kept, passed on or asked."""
    if port.plan.source != port.plan.target:
        _report_modules(port)
        _report_strings(port)
    if port.between_frameworks:
        _report_handles(port)
        _report_members(port)
        _report_sizes(port)
    if port.to_or_from("paddle"):
        _report_results(port)


def _report_modules(port: Port) -> None:
    """What is called through a variable that holds a module is not found."""
    nodes = port.file.nodes
    kept: list[cst.CSTNode | None] = [node.value for node, _ in nodes.of(cst.Assign)]
    kept += [node.value for node, _ in nodes.of(cst.AnnAssign)]
    kept += [node.value for node, _ in nodes.of(cst.Return)]
    kept += [node.value for node, _ in nodes.of(cst.DictElement)]
    kept += [node.value for node, _ in nodes.of(cst.Element)]
    kept += [node.default for node, _ in nodes.of(cst.Param)]
    for call, _ in nodes.of(cst.Call):
        if not isinstance(call.func, cst.Name) or call.func.value not in BY_NAME:
            kept += [argument.value for argument in call.args]
    for value in kept:
        name = port.file.imported(value) if isinstance(value, (cst.Name, cst.Attribute)) else None
        if value is not None and name is not None and is_module(port.source, name):
            _report_module(port, value, f"{port.file.code(value)} is kept or passed on as a value")
    for node, _ in nodes.of(cst.Assign):
        if isinstance(node.value, cst.Name) and port.file.imported(node.value) == port.source.framework:
            names = [port.file.code(target.target) for target in node.targets]
            if any(f"{name}.{part}" in port.file.text.decode() for name in names for part in _parts(port)):
                _report_module(port, node.value, f"{node.value.value} is kept under another name")


def _report_module(port: Port, node: cst.CSTNode, what: str) -> None:
    port.left(
        node,
        "module-as-value",
        f"{what}, and what is called through it is not found",
        "Import the module where it is used, and port again.",
    )


def _parts(port: Port) -> set[str]:
    """Return what stands behind the framework's name in the names of the API's modules."""
    return {module.split(".")[1] for module in (port.source.main, *port.source.others)}


def _report_handles(port: Port) -> None:
    """What only the source's handles have."""
    lacking = _HANDLES[port.source.framework] - _HANDLES[port.target.framework]
    handles = Kinds(
        port.flows, lambda node: isinstance(node, cst.Call) and _makes_handle(port, node), lambda node: False
    )
    for node, _ in port.file.nodes.of(cst.Attribute):
        if node.attr.value in lacking and (handles.of(node.value) is FOUND or _may_be(port, handles, node)):
            port.left(
                node,
                "handle-member",
                f"handles of {port.target.framework} have no {node.attr.value}",
                "Wait for the call with wait(), which all handles have.",
            )
    if port.source.framework == "torch":
        _report_waits(port, handles)


def _report_waits(port: Port, handles: Kinds) -> None:
    """torch's wait() tells that it has ended well."""
    statements = {value for node, _ in port.file.nodes.of(cst.Expr) for value in discarded(node)}
    for call, _ in port.file.nodes.of(cst.Call):
        function = call.func
        is_wait = isinstance(function, cst.Attribute) and function.attr.value == "wait"
        if is_wait and call not in statements and handles.of(cst.ensure_type(function, cst.Attribute).value) is FOUND:
            port.changed(
                call,
                "result-used",
                f"wait() returns True in torch, and nothing in {port.target.framework}",
                "Leave the result alone: an error is raised where the call fails.",
            )


def _report_results(port: Port) -> None:
    """What a call returns that the program has go on in the background or not: Paddle's is a task in any case, and others' then None."""
    made = Kinds(port.flows, lambda node: isinstance(node, cst.Call) and _may_be_none(port, node), lambda node: False)
    nodes = port.file.nodes

    def holds(node: cst.BaseExpression) -> bool:
        values = port.flows.into.get(port.flows.definitions.place(node), ())
        return made.of(node) is FOUND or any(not each.path and made.of(each.source) is FOUND for each in values)

    if port.source.framework == "paddle":
        for used, _ in nodes.of(cst.Attribute):
            if holds(used.value) and not _is_chosen(port, used):
                why = (
                    f"{port.file.code(used.value)} is None in {port.target.framework} where the call has ended already"
                )
                port.changed(used, "result-used", why, f"Use {used.attr.value} only if it is not None.")
        return
    compared = [
        node for node, _ in nodes.of(cst.Comparison) if port.file.code(node.comparisons[0].comparator) == "None"
    ]
    asked: list[tuple[cst.CSTNode, cst.BaseExpression]] = [(node, node.left) for node in compared]
    tests: list[Any] = [*nodes.of(cst.If), *nodes.of(cst.IfExp), *nodes.of(cst.While), *nodes.of(cst.Assert)]
    asked += [(node.test, node.test) for node, _ in tests]
    asked += [(node.expression, node.expression) for node, _ in nodes.of(cst.UnaryOperation)]
    asked += [(each, each) for node, _ in nodes.of(cst.BooleanOperation) for each in (node.left, node.right)]
    waits = {node.test for node, _ in nodes.of(cst.If) if _only_waits(port, node)}
    for question, asked_of in asked:
        if holds(asked_of) and question not in waits:
            why = f"{port.file.code(asked_of)} is None in {port.source.framework} where the call has ended already, and a task in Paddle"
            port.changed(question, "result-used", why, "Ask for the flag that the call is given.")


def _may_be_none(port: Port, call: cst.Call) -> bool:
    """Tell whether *call* goes on in the background as a variable says."""
    name = port.file.imported(call.func)
    rows = rows_with(name, port.plan.source) if name is not None else ()
    given = [value for _, form in rows for value, each in passed(call, form) if each.role == "background"]
    return any(flag_of(value) is None for value in given)


def _is_chosen(port: Port, node: cst.CSTNode) -> bool:
    """Tell whether an ``if`` or its like decides that *node* runs."""
    nodes, (start, end) = port.file.nodes, port.file.span(node)
    parts: list[cst.CSTNode | None] = [part for each, _ in nodes.of(cst.If) for part in (each.body, each.orelse)]
    parts += [part for each, _ in nodes.of(cst.IfExp) for part in (each.body, each.orelse)]
    parts += [each.right for each, _ in nodes.of(cst.BooleanOperation)]
    spans = [port.file.span(part) for part in parts if part is not None]
    return any(span.start <= start and end <= span.end for span in spans)


def _only_waits(port: Port, node: cst.If) -> bool:
    """Tell whether all that depends on *node*'s question is that the program waits."""
    lines = [
        part for line in node.body.body for part in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
    ]
    calls = [port.file.code(each.value) if isinstance(each, cst.Expr) else "" for each in lines]
    return node.orelse is None and all(call.endswith(".wait()") for call in calls)


def _may_be(port: Port, handles: Kinds, node: cst.Attribute) -> bool:
    """Tell whether *node*, which has a name that little else has, is of a variable that holds a handle at times."""
    if node.attr.value not in _NAMES_OF_HANDLES:
        return False
    values = port.flows.into.get(port.flows.definitions.place(node.value), ())
    return any(not value.path and not value.is_element and handles.of(value.source) is FOUND for value in values)


def _makes_handle(port: Port, call: cst.Call) -> bool:
    name = port.file.imported(call.func)
    for row, form in rows_with(name, port.plan.source) if name is not None else ():
        if row in _STARTING:
            return True
        for value, parameter in passed(call, form):
            if parameter.role == "background" and flag_of(value) is not parameter.inverted:
                return True
    return False


def _report_members(port: Port) -> None:
    """Paddle's groups tell their ranks everywhere, those of others to their members."""
    for comparison, _ in port.file.nodes.of(cst.ComparisonTarget):
        group = comparison.comparator
        if (
            port.source.framework == "paddle"
            and isinstance(comparison.operator, (cst.In, cst.NotIn))
            and isinstance(group, cst.Attribute)
            and group.attr.value == "ranks"
            and group.value in port.groups
        ):
            port.changed(
                group,
                "group-of-others",
                f"{port.target.framework} tells the ranks of a group on its own ranks alone, and raises an error on others",
                "Keep the list from which the group is made, and look in that.",
            )


def _report_sizes(port: Port) -> None:
    """Report questions for the size of a group that only some ranks are in: Paddle's nranks and MindSpore's get_group_size tell it on all ranks."""
    members = [node for node, _ in port.file.nodes.of(cst.Attribute) if node.attr.value == "nranks"]
    asked: list[tuple[cst.CSTNode, cst.BaseExpression]] = [(node, node.value) for node in members]
    calls = [node for node, _ in port.file.nodes.of(cst.Call) if len(node.args) == 1]
    if port.source.framework == "mindspore":
        asked = [(node, node.args[0].value) for node in calls if port.file.imported(node.func) == _SIZE_OF_OTHERS]
    for node, group in asked if port.source.framework != "torch" else ():
        values = port.flows.into.get(port.flows.definitions.place(group), ())
        made = [
            each.source for each in values if isinstance(each.source, cst.Call) and not each.path and each.source.args
        ]
        is_made = any((port.file.imported(each.func) or "").endswith(".new_group") for each in made)
        if is_made and not _is_chosen(port, node):
            what = "tells the size of a group on all ranks, and the target on the group's own ranks alone"
            why = f"{port.file.code(node)} {what}"
            port.changed(
                node, "group-of-others", why, "Keep the list from which the group is made, and take its length."
            )


def _report_strings(port: Port) -> None:
    """Report the strings of the file that are a name of the API, or code that uses it and is evaluated; annotations are ported."""
    in_annotations = {
        id(string)
        for node, _ in port.file.nodes.of(cst.Annotation)
        for string in matchers.findall(node, matchers.SimpleString())
    }
    for node, _ in port.file.nodes.of(cst.SimpleString):
        text = node.evaluated_value if id(node) not in in_annotations else None
        name = port.source.canonical(text) if isinstance(text, str) and _DOTTED.fullmatch(text) else ""
        if port.source.is_collective(name) and not name.endswith(_LAUNCHERS):
            _report_string(port, node, f"{node.value} names something of the API while the program runs")
    imports = port.file.top_level_imports
    modules = [each.local for each in imports if is_module(port.source, port.source.canonical(each.name))]
    for call, _ in port.file.nodes.of(cst.Call):
        code = call.args[0].value if call.args else None
        is_run = isinstance(call.func, cst.Name) and call.func.value in ("eval", "exec")
        if is_run and isinstance(code, cst.SimpleString) and any(f"{local}." in code.value for local in modules):
            _report_string(port, code, f"{port.file.code(call.func)} runs code that uses the API")


def _report_string(port: Port, node: cst.CSTNode, why: str) -> None:
    port.left(node, "name-at-run-time", why, "Write the target's names in the string by hand.")


_LAUNCHER_OF = {"torch": "torchrun", "paddle": "paddle.distributed.launch", "mindspore": "msrun"}
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
    port.left(
        node,
        "launcher-variable",
        f"{name} is a variable of {_LAUNCHER_OF[source]}, and {_LAUNCHER_OF[target]} does not know it",
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
