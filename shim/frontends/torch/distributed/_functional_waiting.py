"""Waiting for the results of functional collectives, at torch's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from shim.core.engines.base import Tensor
from shim.frontends.torch._functional import waiting
from shim.frontends.torch._functional.errors import functional_caller

__all__ = [
    "allow_inflight_collective_as_graph_input_ctx",
    "wait_tensor",
    "wait_tensors",
    "wait_tensors_backward",
]

_WAIT_TENSORS = functional_caller("_functional_collectives.wait_tensors", input="tensors")


def wait_tensor(tensor: Tensor) -> Any:
    """Return a plain tensor with the elements of *tensor*, which may be on its way; gradients go through.

    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return waiting.waited(tensor)


def wait_tensors(tensors: Sequence[Tensor]) -> list[Any]:
    """Return plain tensors with the elements of *tensors*, a list of at least one, which may be on their way; gradients go through.

    Raises: RuntimeError for an empty list; TypeError for what is no list of tensors.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return waiting.all_waited(_WAIT_TENSORS, tensors)


def wait_tensors_backward(ctx: Any, grad_outputs: list[Any]) -> tuple[list[Any]]:
    """Return *grad_outputs*, of tensors that were waited for, as the gradients of the one argument; nothing of *ctx* is needed.

    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return waiting.passed_through(ctx, grad_outputs)


def allow_inflight_collective_as_graph_input_ctx(value: bool = True) -> AbstractContextManager[None]:
    """Return a context manager in which graphs compiled by torch wait for tensors in flight, if *value* is true.

    Raises: UnsupportedError for a true *value*.
    Deviates: a graph compiled by torch cannot wait for this project's engines.
    See: https://docs.pytorch.org/docs/2.15/distributed.html
    """
    return waiting.graph_inputs(value)
