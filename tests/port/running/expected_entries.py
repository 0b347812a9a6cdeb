"""The entries that the ports of the scripts are to have, each with its reason; there are to be no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from shim.port.plan import Entry

# The ways round, by the API in which a script is written.
ROUNDS = {
    "torch": ("paddle_3", "mindspore", "torch"),
    "paddle_2": ("paddle_3", "torch", "mindspore", "paddle_2"),
    "paddle_3": ("mindspore", "torch", "paddle_3"),
    "mindspore": ("torch", "paddle_3", "mindspore"),
}


class Expected(NamedTuple):
    """*code* is in the line of the entry, *why* is why it has to be there."""

    kind: str
    rule: str
    code: str
    why: str


_BACKEND = "Paddle chooses the backend by the device; the frontend needs none"
_OBJECTS = "Paddle has no gather_object: the script is to use all_gather_object there"

_NO_BACKEND = Expected("changed", "argument-without-effect", "init_process_group(", _BACKEND)

_GLOO = Expected("changed", "backend-name", '"gloo"', "MindSpore has no gloo, and its hccl is for Ascend alone")

# By script and direction, on a way round too.
ENTRIES: dict[tuple[str, str], list[Expected]] = {
    **{
        (f"torch/{script}", f"torch -> {target}"): [_NO_BACKEND]
        for script in ("data_parallel", "ring", "tensor_parallel", "zero1")
        for target in ("paddle_2", "paddle_3")
    },
    **{(f"torch/{name}", "torch -> mindspore"): [_GLOO] for name in ("data_parallel", "ring", "tensor_parallel")},
    ("torch/ring", "paddle_3 -> mindspore"): [
        Expected("changed", "group-of-others", "group.nranks", "the port does not see that every rank is in the group")
    ],
    ("torch/zero1", "torch -> mindspore"): [
        _NO_BACKEND._replace(why="MindSpore refuses all backends but one, and this is a variable")
    ],
    ("mindspore/evaluation", "mindspore -> paddle_2"): [
        Expected("left", "no-equivalent", "gather_object,", _OBJECTS),
        Expected("left", "no-equivalent", "gather_object(outcome", _OBJECTS),
    ],
    ("mindspore/evaluation", "mindspore -> paddle_3"): [
        Expected("left", "no-equivalent", "gather_object,", _OBJECTS),
        Expected("left", "no-equivalent", "gather_object(outcome", _OBJECTS),
    ],
    ("mindspore/evaluation", "torch -> paddle_3"): [
        Expected("left", "no-equivalent", "gather_object,", _OBJECTS),
        Expected("left", "no-equivalent", "gather_object(outcome", _OBJECTS),
    ],
    ("mindspore/checkpoint", "mindspore -> torch"): [
        _NO_BACKEND._replace(why="shim's torch frontend has no hccl; it chooses by the device")
    ],
}


def explained(script: str, api: str, target: str, entries: Sequence[Entry], text: str) -> list[str]:
    """Return what does not agree between *entries* and those expected, with the lines of *text*; nothing if all is explained."""
    lines = text.splitlines()
    wrong = []
    left = Counter(ENTRIES.get((script, f"{api} -> {target}"), []))
    for entry in entries:
        line = lines[entry.line - 1]
        fitting = next(
            (
                each
                for each in left
                if left[each] and (each.kind, each.rule) == (entry.kind, entry.rule) and each.code in line
            ),
            None,
        )
        if fitting is None:
            wrong.append(f"{entry.line} {entry.kind} {entry.rule}: {line.strip()} ({entry.why})")
        else:
            left[fitting] -= 1
    return wrong + [f"not there: {each}" for each in left.elements()]
