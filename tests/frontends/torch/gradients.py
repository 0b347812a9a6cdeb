"""Gradients of collectives against finite differences: the loss is the sum of all ranks' losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import shim.frontends.torch.distributed as dist

Tensors = Sequence[Any]
Function = Callable[[Tensors], Tensors]

STEP = 1e-6


def weights(rank: int, position: int, shape: Sequence[int]) -> np.ndarray:
    """Numbers that differ by rank, output and element, so that no two gradients are the same."""
    count = int(np.prod(shape))
    return (np.cos(np.arange(count) * 1.7 + 3.1 * position + 7.3 * rank) + 0.3).reshape(tuple(shape))


def loss_of(rank: int, outputs: Tensors) -> Any:
    """One number, not linear in *outputs*, so that second derivatives are not zero; complex outputs count as pairs."""
    total = torch.zeros((), dtype=torch.float64)
    for position, output in enumerate(outputs):
        real = torch.view_as_real(output) if output.is_complex() else output
        weight = torch.from_numpy(weights(rank, position, real.shape))
        total = total + (weight * real).sum() + 0.25 * (weight * real * real).sum()
    return total


def gradients_of(rank: int, function: Function, inputs: Sequence[np.ndarray], create_graph: bool = False) -> Tensors:
    tensors = [torch.from_numpy(array.copy()).requires_grad_() for array in inputs]
    return torch.autograd.grad(loss_of(rank, function(tensors)), tensors, create_graph=create_graph)


def differentiated(rank: int, function: Function) -> Function:
    """Return the function from inputs to the gradients of *function*, whose own gradients are second derivatives."""

    def first_derivatives(tensors: Tensors) -> Tensors:
        with torch.enable_grad():
            return torch.autograd.grad(loss_of(rank, function(tensors)), list(tensors), create_graph=True)

    return first_derivatives


def assert_gradients(
    rank: int, function: Function, inputs: Sequence[np.ndarray], group: Any = None, tolerance: float = 2e-6
) -> None:
    """Compare autograd's gradients on every rank of *group* with differences of the sum of all ranks' losses.

    Each element of each rank's *inputs*, and of their imaginary parts, is moved in its turn, while all ranks run *function*.
    """
    found = [gradient.detach().resolve_conj().numpy() for gradient in gradients_of(rank, function, inputs)]
    counts: list[Any] = [None] * dist.get_world_size(group)
    mine = [(array.size, np.iscomplexobj(array)) for array in inputs]
    dist.all_gather_object(counts, mine, group)
    me = dist.get_rank(group)
    for moved, described in enumerate(counts):
        for position, (size, is_complex) in enumerate(described):
            for element in range(size):
                slope = _slope(rank, function, inputs, group, moved == me, position, element, STEP)
                if is_complex:
                    slope = slope + 1j * _slope(
                        rank, function, inputs, group, moved == me, position, element, 1j * STEP
                    )
                if moved == me:
                    seen = found[position].reshape(-1)[element]
                    assert abs(seen - slope) <= tolerance * max(1.0, abs(slope)), (
                        f"input {position}, element {element}: gradient {seen}, slope {slope}"
                    )


def _slope(
    rank: int,
    function: Function,
    inputs: Sequence[np.ndarray],
    group: Any,
    is_mine: bool,
    position: int,
    element: int,
    step: complex,
) -> Any:
    losses = [_total(rank, function, inputs, group, is_mine, position, element, sign * step) for sign in (1, -1)]
    return (losses[0] - losses[1]) / (2 * abs(step))


def _total(
    rank: int,
    function: Function,
    inputs: Sequence[np.ndarray],
    group: Any,
    is_mine: bool,
    position: int,
    element: int,
    step: complex,
) -> float:
    arrays = [array.copy() for array in inputs]
    if is_mine:
        arrays[position].reshape(-1)[element] += step
    loss = loss_of(rank, function([torch.from_numpy(array).requires_grad_() for array in arrays])).detach()
    total = loss.reshape(1).numpy().copy()
    dist.all_reduce(total, group=group)
    return float(total[0])
