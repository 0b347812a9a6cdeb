"""A torch rank trains a small model and hands its weights to a PaddlePaddle and a MindSpore rank, which use them.

    shim run -n 3 examples/weight_handover.py

Rank 0 trains with torch and calls torch.distributed's functions; rank 1 is Paddle's (3.x), rank 2 MindSpore's (mint). What
the weights are called and how they look goes around as Python objects, the weights as tensors of each rank's framework.
Each rank prints a checksum over the weights it holds, and all of them are equal; then all three models say the same.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any, NamedTuple

import numpy as np

import shim.frontends.torch.distributed as torch_dist

FEATURES, HIDDEN, SAMPLES, STEPS = 8, 32, 64, 50


class Weight(NamedTuple):
    """How a weight looks; sent as a Python object, so every rank must be able to import this class."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Report(NamedTuple):
    """What a rank says at the end."""

    framework: str
    checksum: str
    prediction: np.ndarray


def main() -> None:
    torch_dist.init_process_group()  # one world for all frontends of a process
    rank, size = torch_dist.get_rank(), torch_dist.get_world_size()
    if size != 3:
        sys.exit(f"this example needs three ranks, got {size}: shim run -n 3 {sys.argv[0]}")
    reports = [torch_trainer, paddle_consumer, mindspore_consumer][rank]()
    mine = reports[rank]
    print(f"rank {rank}, {mine.framework}: checksum {mine.checksum}, prediction {mine.prediction[:3]} ...", flush=True)
    if len({report.checksum for report in reports}) != 1:
        raise AssertionError(f"the ranks hold different weights: {[report.checksum for report in reports]}")
    for report in reports:
        np.testing.assert_allclose(report.prediction, reports[0].prediction, rtol=1e-3, atol=1e-4)  # their tanh differs


def samples() -> tuple[np.ndarray, np.ndarray]:
    inputs = np.random.default_rng(0).standard_normal((SAMPLES, FEATURES)).astype(np.float32)
    return inputs, np.sin(inputs.sum(axis=1, keepdims=True)).astype(np.float32)


def checksum(weights: list[np.ndarray]) -> str:
    return hashlib.sha256(b"".join(weight.tobytes() for weight in weights)).hexdigest()[:16]


def torch_trainer() -> list[Report]:
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1))
    inputs, targets = map(torch.from_numpy, samples())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()

    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    looks = [Weight(name, tuple(w.shape), str(w.dtype).removeprefix("torch.")) for name, w in weights.items()]
    torch_dist.broadcast_object_list([looks], src=0)
    for weight in weights.values():
        torch_dist.broadcast(weight, src=0)

    report = Report("torch", checksum([w.numpy() for w in weights.values()]), model(inputs).detach().numpy().ravel())
    reports: list[Any] = [None] * 3
    torch_dist.all_gather_object(reports, report)
    return reports


def paddle_consumer() -> list[Report]:
    import paddle

    import shim.frontends.paddle_3.distributed as dist

    dist.init_parallel_env()
    received: list[Any] = [None]
    dist.broadcast_object_list(received, src=0)
    weights = {look.name: paddle.empty(list(look.shape), look.dtype) for look in received[0]}
    for weight in weights.values():
        dist.broadcast(weight, src=0)

    def linear(layer: int, x: Any) -> Any:  # torch keeps a weight as (out, in), Paddle as (in, out)
        return paddle.nn.functional.linear(x, weights[f"{layer}.weight"].T, weights[f"{layer}.bias"])

    prediction = linear(2, paddle.tanh(linear(0, paddle.to_tensor(samples()[0]))))
    report = Report("paddle", checksum([w.numpy() for w in weights.values()]), prediction.numpy().ravel())
    reports: list[Any] = []  # Paddle's function appends
    dist.all_gather_object(reports, report)
    return reports


def mindspore_consumer() -> list[Report]:
    import mindspore
    from mindspore import mint

    import shim.frontends.mindspore.mint.distributed as dist

    dist.init_process_group()
    received: list[Any] = [None]
    dist.broadcast_object_list(received, src=0)
    weights = {look.name: mint.empty(look.shape, dtype=getattr(mindspore, look.dtype)) for look in received[0]}
    for weight in weights.values():
        dist.broadcast(weight, src=0)

    def linear(layer: int, x: Any) -> Any:
        return mint.matmul(x, weights[f"{layer}.weight"].T) + weights[f"{layer}.bias"]

    prediction = linear(2, mint.tanh(linear(0, mindspore.Tensor(samples()[0]))))
    report = Report("mindspore", checksum([w.asnumpy() for w in weights.values()]), prediction.asnumpy().ravel())
    reports: list[Any] = [None] * 3
    dist.all_gather_object(reports, report)
    return reports


if __name__ == "__main__":
    main()
