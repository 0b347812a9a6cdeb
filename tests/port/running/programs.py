"""Small programs that use every row of the table, to be written in each API from its recorded parameters.

``<row(role=expression, ...)>`` is a call of that row's function. A program keeps what it has computed in the list ``seen``.
"""

from __future__ import annotations

import ast
import re

from shim.port.apis import APIS
from shim.port.correspondences.members import member_for
from shim.port.correspondences.table import Form, forms_of

# The ways to write a program: with arguments by position, all by keyword, with the API's second and third function for a row.
VARIANTS = ("positions", "keywords", "other functions", "third functions")
_CALL = re.compile(r"<(\w+)\((.*?)\)>")

# Functions that no program calls, and why.
NOT_CALLED = {
    **{
        (
            paddle,
            "paddle.distributed._reduce_scatter_base",
        ): "Paddle has it in inner modules alone, where programs do not look for it"
        for paddle in ("paddle_2", "paddle_3")
    },
    (
        "mindspore",
        "mindspore.mint.distributed.get_cache_group_rank",
    ): "MindSpore has it in an inner module alone, where programs do not look for it",
    (
        "mindspore",
        "mindspore.mint.distributed.get_cache_group_size",
    ): "MindSpore has it in an inner module alone, where programs do not look for it",
    (
        "torch",
        "torch.distributed.monitored_barrier",
    ): "it is made of messages to and from rank 0, so that it can name who is missing: the traces differ",
}

PROGRAMS = {
    "all_gather": """
outputs = [np.zeros(3) for _ in range(size)]
<all_gather(outputs=outputs, input=mine)>
seen += outputs
""",
    "all_gather in the background": """
outputs = [np.zeros(3) for _ in range(size)]
handle = <all_gather(outputs=outputs, input=mine, background=True)>
if handle is not None:
    handle.wait()
seen += outputs
""",
    "all_gather_whole": """
output = np.zeros(3 * size)
<all_gather_whole(output=output, input=mine)>
seen.append(output)
""",
    "all_reduce": """
tensor, other, third = mine + 1, mine + 1, mine + 1
<all_reduce(tensor=tensor, op=<ReduceOp.MAX>)>
op = <ReduceOp.MIN>
<all_reduce(tensor=other, op=op)>
<all_reduce(tensor=third, op=<ReduceOp.PRODUCT>)>
seen += [tensor, other, third]
""",
    "all_reduce in a group": """
group = <new_group(ranks=[0, size - 1])>
if rank in (0, size - 1):
    tensor = mine + 1
    handle = <all_reduce(tensor=tensor, group=group, background=True)>
    handle.wait()
    seen += [tensor, <member size>, <member rank>, list(<member ranks_of>), <member rank_in_world>, <member rank_in_group>]
    seen += [<size(group=group)>, <rank(group=group)>]
    <destroy(group=group)>
""",
    "all_to_all": """
outputs = [np.zeros(3) for _ in range(size)]
<all_to_all(outputs=outputs, inputs=[mine + 100 * other for other in range(size)])>
seen += outputs
""",
    "all_to_all_whole": """
counts = [1 + (rank + other) % 2 for other in range(size)]
given = np.arange(float(sum(counts))) + 100 * rank
output = np.zeros(sum(counts))
<all_to_all_whole(output=output, input=given, output_splits=counts, input_splits=list(counts))>
seen.append(output)
output = np.zeros(2 * size)
<all_to_all_whole(output=output, input=np.arange(2.0 * size) + 100 * rank)>
seen.append(output)
""",
    "all_to_all_whole, unequal": """
sent = [1 + rank] * size
received = [1 + other for other in range(size)]
output = np.zeros(sum(received))
flag = rank < 0
<all_to_all_whole(output=output, input=np.arange(float(sum(sent))) + 100 * rank, output_splits=received, input_splits=sent, background=flag)>
seen.append(output)
""",
    "barrier": """
<barrier()>
seen.append(1)
""",
    "broadcast": """
tensor = mine + 1
<broadcast(tensor=tensor, root=size - 1)>
seen.append(tensor)
""",
    "gather": """
outputs = [np.zeros(3) for _ in range(size)] if rank == 0 else <nothing>
<gather(input=mine, outputs=outputs)>
seen += outputs or [0]
outputs = [np.zeros(3) for _ in range(size)] if rank == size - 1 else <nothing>
<gather(input=mine, outputs=outputs, root=size - 1)>
seen += outputs or [0]
""",
    "reduce": """
tensor = mine + 1
<reduce(tensor=tensor, root=size - 1, op=<ReduceOp.PRODUCT>)>
seen.append(tensor)
""",
    "reduce_scatter": """
output = np.zeros(3)
<reduce_scatter(output=output, inputs=[mine * (1 + other) for other in range(size)], op=<ReduceOp.MAX>)>
seen.append(output)
""",
    "reduce_scatter_whole": """
output = np.zeros(2)
<reduce_scatter_whole(output=output, input=np.arange(2.0 * size) + 10 * rank)>
seen.append(output)
""",
    "scatter": """
output = np.zeros(3)
<scatter(output=output, inputs=[mine + 100 * other for other in range(size)] if rank == 0 else <nothing>)>
seen.append(output)
<scatter(output=output, inputs=[mine + 7 * other for other in range(size)] if rank == size - 1 else <nothing>, root=size - 1)>
seen.append(output)
""",
    "send": """
tensor = mine + 1
if rank == 0:
    <send(tensor=tensor, peer=1)>
if rank == 1:
    <receive(tensor=tensor, peer=0)>
seen.append(tensor)
""",
    "send in the background": """
tensor, other = mine + 1, np.zeros(3)
handles = [<send_in_background(tensor=tensor, peer=(rank + 1) % size)>]
handles.append(<receive_in_background(tensor=other, peer=(rank - 1) % size)>)
for handle in handles:
    handle.wait()
seen.append(other)
""",
    "batch": """
tensor, other = mine + 1, np.zeros(3)
operations = [
    <batched(function=<function send_in_background>, tensor=tensor, peer=(rank + 1) % size)>,
    <batched(function=<function receive_in_background>, tensor=other, peer=(rank - 1) % size)>,
]
handles = <batch(operations=operations)>
for handle in handles if isinstance(handles, list) else [handles]:
    handle.wait()
seen.append(other)
""",
    "all_gather_object": """
objects = <places>
<all_gather_object(objects=objects, object={"rank": rank})>
seen += objects
""",
    "broadcast_object_list": """
objects = [rank, "of", rank]
<broadcast_object_list(objects=objects, root=1)>
seen += objects
""",
    "scatter_object_list": """
objects = [None]
<scatter_object_list(objects=objects, inputs=[("for", other) for other in range(size)])>
seen += objects
""",
    "gather_object": """
objects = [None] * size if rank == 0 else None
<gather_object(object=("from", rank), objects=objects)>
seen += objects or [0]
""",
    "send_objects": """
objects = [rank, rank]
if rank == 1:
    <send_objects(objects=objects, peer=0)>
if rank == 0:
    <receive_objects(objects=objects, peer=1)>
seen += objects
""",
    "is_initialized": """
seen += [<is_available()>, <is_initialized()>, <rank()>, <size()>]
""",
}

_FRAME = """
import numpy as np
import {main} as dist
{more}

def run(rank, size):
    seen = [rank]
    {initialise}
    mine = np.arange(3.0) + 10 * rank
    {body}
    {destroy}
    return seen
"""


def rows_of(program: str) -> set[str]:
    """Return the rows that the program uses."""
    return {row for row, _ in _CALL.findall(PROGRAMS[program])}


def written(program: str, api: str, variant: int = 0) -> str | None:
    """Return the program in *api*, on its frontend; None where that has no function for one of its rows.

    *variant* is a number of ``VARIANTS``.
    """
    if not all(forms_of(row, api) for row in rows_of(program)):
        return None
    return framed(body_of(PROGRAMS[program], api, variant), api)


def body_of(text: str, api: str, variant: int = 0) -> str:
    """Return *text*, which has rows for calls, with the calls of *api*."""
    text = text.strip()
    for old, new in _values(api).items():
        text = text.replace(old, new)
    text = _CALL.sub(lambda match: _call(match, api, variant), text)
    return _CALL.sub(lambda match: _call(match, api, variant), text)


def framed(body: str, api: str) -> str:
    """Return a program that does what *body* says between the beginning and the end of the job."""
    return _FRAME.format(
        main=APIS[api].written(APIS[api].main, native=False),
        more="import shim.frontends.mindspore.communication as communication\n"
        "from shim.frontends.mindspore.communication import comm_func\nfrom shim.frontends.mindspore.ops import ReduceOp"
        if api == "mindspore"
        else "",
        body=body.replace("\n", "\n    "),
        initialise=f"dist.{forms_of('initialise', api)[0].name.rpartition('.')[2]}()",
        destroy="dist.destroy_process_group()",
    )


def _values(api: str) -> dict[str, str]:
    named = {"torch": "dist.ReduceOp.{}", "paddle": "dist.ReduceOp.{}", "mindspore": "ReduceOp.{}"}[APIS[api].framework]
    found = {"<nothing>": "[]" if api == "mindspore" else "None"}
    found["<places>"] = "[]" if APIS[api].framework == "paddle" else "[None] * size"
    for op in ("SUM", "MAX", "MIN", "PRODUCT"):
        own = "PROD" if op == "PRODUCT" and api != "torch" else op
        found[f"<ReduceOp.{op}>"] = named.format(own)
    for row in ("send_in_background", "receive_in_background"):
        found[f"<function {row}>"] = _local(forms_of(row, api)[0])
    for row in ("size", "rank", "ranks_of", "rank_in_world", "rank_in_group"):
        member = (member_for(row, api) or "").replace("{group}", "group")
        member = member.replace("{rank}", "0" if row == "rank_in_world" else "size - 1")
        found[f"<member {row}>"] = member.replace(f"{APIS[api].main}.", "dist.")
    return found


def functions_of(program: str, api: str, variant: int) -> list[str]:
    """Return the functions that ``written`` has the program call."""
    text = PROGRAMS[program].replace("<nothing>", "None").replace("<places>", "[]")
    text = re.sub(r"<(?:ReduceOp|member|function)[^<>]*>", "None", text)
    found, calls = set(), _CALL.findall(text)
    while calls:
        found |= {_chosen(row, _values_of(arguments), api, variant).name for row, arguments in calls}
        text = _CALL.sub("None", text)
        calls = _CALL.findall(text)
    return sorted(found)


def _values_of(arguments: str) -> dict[str | None, str]:
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}


def _chosen(row: str, values: dict[str | None, str], api: str, variant: int) -> Form:
    """Return the function that is called for a row with arguments of these roles."""
    forms = [form for form in forms_of(row, api) if values.keys() <= {parameter.role for parameter in form.parameters}]
    forms = [form for form in forms if (api, form.name) not in NOT_CALLED]
    return forms[min(max(variant - 1, 0), len(forms) - 1)]


def _call(match: re.Match[str], api: str, variant: int) -> str:
    values = _values_of(match[2])
    form = _chosen(match[1], values, api, variant)
    arguments: list[str] = []
    by_position = variant != 1
    for parameter in form.parameters:
        if parameter.role not in values:
            by_position = False
            continue
        value = values.pop(parameter.role)
        if parameter.inverted:
            value = {"True": "False", "False": "True"}.get(value, f"not {value}")
        arguments.append(value if by_position else f"{parameter.name}={value}")
    return f"{_local(form)}({', '.join(arguments)})"


def _local(form: Form) -> str:
    modules = {f"{APIS[form.api].main}.": "dist.", "mindspore.communication.comm_func.": "comm_func."}
    modules["mindspore.communication."] = "communication."
    return next((form.name.replace(path, local) for path, local in modules.items() if path in form.name), form.name)
