"""What torch.compile makes of the frontend: what communicates is called between graphs, or stands in them as an operator.

A function in a graph would have to be known to torch; ours hand addresses of memory to the native engine. Functions that are
marked break the graph, as those under ``torch.compiler.disable`` do; of others, torch's tracer sees a stand-in. Torch is not
imported for the marks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from shim.core.tensors.hollow import are_hollow_taken

_REASON = (
    "shim's frontends communicate between graphs, not in them; with fullgraph=True call the functional collectives of "
    "shim.frontends.torch.distributed._functional_collectives, which a graph holds"
)
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


def in_graphs(function: Callable[..., Any], stand_in: Callable[..., Any]) -> None:
    """Let torch.compile trace *stand_in* where *function* is called, which takes the same arguments."""
    function.__dict__["_torchdynamo_inline"] = stand_in


def once_a_graph(function: Callable[..., Any]) -> None:
    """Let torch.compile call *function* while it traces a graph, and keep what it returns in the graph."""
    function.__dict__["_dynamo_marked_constant"] = True


def is_traced() -> bool:
    """Tell whether torch, which must be loaded, traces what runs here into a graph, or transforms it with ``torch.func``."""
    core: Any = sys.modules["torch._C"]
    if core._are_functorch_transforms_active():
        return True
    if not core._len_torch_dispatch_stack():
        return False
    keys = core._TorchDispatchModeKey
    if core._get_dispatch_mode(keys.FAKE) is not None and not are_hollow_taken():
        return True
    return any(core._get_dispatch_mode(key) is not None for key in (keys.PROXY, keys.FUNCTIONAL))


def is_seen() -> bool:
    """Tell whether a mode or the profiler of torch, which must be loaded, looks on at the operators that are called here.

    Not in a rehearsal: the mode that makes tensors without memory would carry out the operators itself.
    """
    core: Any = sys.modules["torch._C"]
    is_there = core._len_torch_dispatch_stack() or core._autograd._profiler_enabled()
    return bool(is_there) and not are_hollow_taken()


in_graphs(is_traced, lambda: True)
in_graphs(is_seen, lambda: False)
