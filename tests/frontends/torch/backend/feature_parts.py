# mypy: ignore-errors  # most of what it calls has no types in torch
"""What the features share: where they are listed, a small model, its batches, and its training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor

FEATURES: dict[str, Callable[[int, int], list[Any]]] = {}
ON_REQUEST: dict[
    str, Callable[[int, int], list[Any]]
] = {}  # those of torch's own functions alone, and not of the frontend's


def feature(function: Callable[[int, int], list[Any]]) -> Callable[[int, int], list[Any]]:
    FEATURES[function.__name__] = function
    return function


def feature_on_request(function: Callable[[int, int], list[Any]]) -> Callable[[int, int], list[Any]]:
    ON_REQUEST[function.__name__] = function
    return function


def plain(value: Any) -> Any:
    """Return *value* with lists of numbers in place of tensors."""
    if isinstance(value, DTensor):
        value = value.full_tensor()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value.detach().tolist() if isinstance(value, torch.Tensor) else value


def net(width: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))


def batches(rank: int, count: int = 3, width: int = 8) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(count):
        yield torch.randn(4, width, generator=generator)


def train(model: nn.Module, rank: int, optimizer: Any = None, count: int = 3) -> list[Any]:
    """Train *model* for *count* steps, and return the losses."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in batches(rank, count):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def weights(model: nn.Module) -> list[Any]:
    return [plain(one) for one in model.parameters()]
