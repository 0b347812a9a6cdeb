"""Keeping torch.compile out of the frontend: what communicates is called between graphs, never traced into one.

A function in a graph would have to be known to torch; ours hand addresses of memory to the native engine. Marked
functions break the graph, as those under ``torch.compiler.disable`` do, without torch being imported for the marks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any

__all__ = ["between_graphs", "keep_out_of_graphs"]

_REASON = "shim's frontends communicate between graphs, not in them"
_marked: set[FunctionType] = set()


def between_graphs(namespace: Mapping[str, Any], names: Iterable[str]) -> None:
    """Mark the functions called *names* in *namespace*, and the methods of its classes: no graph takes them in."""
    for name in names:
        thing = namespace.get(name)  # a class that needs torch is made when it is asked for
        members = vars(thing).values() if isinstance(thing, type) else [thing]
        _marked.update(member for member in members if isinstance(member, FunctionType))
    for function in _marked:
        function.__dict__.update(_torchdynamo_disable=True, _torchdynamo_disable_msg=_REASON)
    keep_out_of_graphs()


def keep_out_of_graphs() -> None:
    """Tell torch, where it is imported by now, to run the marked functions and what they call as they are."""
    frames: Any = sys.modules.get("torch._C._dynamo.eval_frame")
    if hasattr(frames, "set_code_exec_strategy"):  # an older torch has it not
        skip = frames._FrameAction.SKIP
        for function in _marked:
            frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
