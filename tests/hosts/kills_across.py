"""The program that ``test_kills_across`` starts on hosts: ``kills_across.py KILLS SEED FOLDER``, DDP steps that are repeated where a rank was lost.

Between two kills are some steps. A rank kills itself at a random moment of the step whose turn it is, and now and then a second one a
moment later, while the others meet. In the end each rank writes to FOLDER what it has trained.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import torch
from torch import nn

import shim.frontends.torch.distributed as dist
import shim.torch_backend  # noqa: F401  # torch's groups and the frontend's are one

KILLS, SEED, FOLDER, RANK = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(os.environ["RANK"])
STEPS_BETWEEN, WIDTH = 10, 64


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(8, WIDTH, generator=generator, dtype=torch.float64)
    return inputs, torch.sin(inputs)


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(WIDTH, 512), nn.Tanh(), nn.Linear(512, WIDTH)).double()


def train(model: nn.Module, step: int, ranks: list[int]) -> None:
    """Have *model* see the batches of *ranks* of one step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer.zero_grad()  # what a lost step has left
    for rank in ranks:
        inputs, targets = batch(step, rank)
        (nn.functional.mse_loss(model(inputs), targets) / len(ranks)).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def kill_if_it_is_time(step: int) -> None:
    """Have this process killed in a moment, if that is its part in this step, and it was not killed there before."""
    number, rest = divmod(step, STEPS_BETWEEN)
    if rest or not 0 < number <= KILLS:
        return
    chance = random.Random(f"{SEED} {number}")
    victims = chance.sample(range(dist.get_world_size()), 2 if number % 5 == 0 else 1)
    if RANK not in victims:
        return
    seconds = chance.uniform(0.0, 0.005) + chance.uniform(0.0, 2.0) * victims.index(RANK)
    was_killed = FOLDER / f"kill-{number}-of-{RANK}"
    if not was_killed.exists():
        was_killed.touch()
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


def take_the_latest(model: nn.Module, step: int) -> int:
    """Give all ranks the parameters of the one that has come furthest; return its step."""
    steps = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(steps, torch.tensor([step]))
    latest = max(range(len(steps)), key=lambda rank: int(steps[rank]))
    for parameter in model.parameters():
        dist.broadcast(parameter.data, latest)
    return int(steps[latest])


def main() -> None:
    torch.set_num_threads(1)
    model, step, steps = network(), 0, STEPS_BETWEEN * (KILLS + 1)
    lost_at: list[float] = []
    back_after: list[float] = []
    while True:
        try:
            dist.init_process_group()
            step = take_the_latest(model, step)
            back_after += [time.monotonic() - since for since in lost_at[-1:]]
            replica = nn.parallel.DistributedDataParallel(model)
            while step < steps:
                kill_if_it_is_time(step)
                train(replica, step, [RANK])
                step += 1
            dist.barrier()
            break
        except RuntimeError as error:
            if "PeerLostError: " not in f"{type(error).__name__}: {error}":  # DDP raises a RuntimeError with its text
                raise
            lost_at.append(time.monotonic())
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    alone = network()
    for number in range(steps):
        train(alone, number, list(range(int(os.environ["WORLD_SIZE"]))))
    pairs = zip(model.parameters(), alone.parameters(), strict=True)
    furthest = max(float((one - other).detach().abs().max()) for one, other in pairs)
    seen = {"losses": len(lost_at), "back after": back_after, "furthest": furthest}
    (FOLDER / f"rank{RANK}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
