"""Waiting for tensors that collectives are writing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from shim.core.callers import Caller
from shim.core.tensors import framework_of
from shim.errors import UnsupportedError
from shim.frontends import _absent
from shim.frontends.torch._compiled_graphs import in_graphs
from shim.frontends.torch._errors import ArgumentTypeError
from shim.frontends.torch._functional.differentiable import is_torch
from shim.frontends.torch._functional.errors import NothingToWaitForError

# The gradients of the one argument of waiting for several tensors, which changes no element, whatever autograd kept.
passed_through: Callable[[Any, list[Any]], tuple[list[Any]]] = lambda _ctx, gradients: (gradients,)  # noqa: E731


def async_class(module: str, name: str) -> Any:
    """Return the class called *name* for *module*; refuse any other name, with the reason where a later release has it."""
    if name != "AsyncCollectiveTensor":
        _absent.refuse_name(module, name)
    import torch  # noqa: F401  # the class is a subclass of torch's Tensor

    from shim.frontends.torch._functional.async_tensor import AsyncCollectiveTensor

    return AsyncCollectiveTensor


def waited(tensor: Any) -> Any:
    """Return the plain tensor that *tensor* stands for, once it is there; any other is returned as it is."""
    wait = getattr(tensor, "trigger_wait", None)
    return wait() if is_torch(tensor) and wait is not None else tensor


def all_waited(caller: Caller, tensors: Any) -> list[Any]:
    """Return the plain tensors that *tensors*, a list of at least one, stand for."""
    if not isinstance(tensors, (list, tuple)) or not all(framework_of(type(tensor)) for tensor in tensors):
        raise caller.explain(ArgumentTypeError(f"{{input}} must be a list of tensors, got {tensors!r}"))
    if not tensors:
        raise caller.explain(NothingToWaitForError("{input} must hold at least one tensor, got an empty list"))
    return [waited(tensor) for tensor in tensors]


def graph_inputs(allowed: bool) -> AbstractContextManager[None]:
    """Return a context in which tensors in flight are not *allowed* as inputs of compiled graphs, as everywhere."""
    if allowed:
        raise UnsupportedError(
            "torch.distributed._functional_collectives.allow_inflight_collective_as_graph_input_ctx: value must be False "
            "in the torch frontend: graphs compiled by torch cannot wait for the engine\n"
            "Wait with the Work that the collective returned, before the graph."
        )
    return nullcontext()


def _waited_in_graph(tensor: Any) -> Any:
    return tensor.view_as(tensor) if hasattr(tensor, "trigger_wait") else tensor


in_graphs(waited, _waited_in_graph)
