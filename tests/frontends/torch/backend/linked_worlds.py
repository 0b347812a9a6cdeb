"""A world of two ranks that torch's own functions and the frontend's see as one, for tests on ranks."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.distributed as own

import shim.frontends.torch.distributed as dist
from shim.frontends.torch._backend.making import link, unlink
from shim.frontends.torch._backend.registration import register
from shim.frontends.torch._backend.serving import stop_serving

_worlds = itertools.count()
TWO = pytest.mark.ranks(2)


def place() -> dict[str, Any]:
    """Return where the ranks meet next."""
    name = f"shim-test-{os.environ['SHIM_JOB']}-{next(_worlds)}"
    rank, size = int(os.environ["SHIM_RANK"]), int(os.environ["SHIM_WORLD_SIZE"])
    return {"store": own.FileStore(os.path.join(tempfile.gettempdir(), name), size), "rank": rank, "world_size": size}


@contextmanager
def linked(backend: str | None = "shim", by_frontend: bool = False) -> Iterator[None]:
    """A world of *backend* that torch's own function makes, or the frontend's; afterwards torch is on its own."""
    if dist.is_initialized():  # a test before has left it so
        dist.destroy_process_group()
    register()
    link()
    try:
        if by_frontend:
            dist.init_process_group(backend)
        else:
            own.init_process_group(backend, **place())
        yield
    finally:
        if own.is_initialized():
            own.destroy_process_group()
        stop_serving()
        unlink()


def total(group: Any = None, module: Any = own) -> float:
    """Return the number of ranks in *group*, if each of them, and no other, adds what only it has."""
    members = dist.get_process_group_ranks(group)
    tensor = torch.tensor([10.0 ** own.get_rank(), 1.0])
    module.all_reduce(tensor, group=group)
    assert tensor[0] == sum(10.0**rank for rank in members)
    return float(tensor[1])
