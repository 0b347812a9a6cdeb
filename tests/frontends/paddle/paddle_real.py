"""The real Paddle over gloo beside this project, in the same rank processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from paddle_world import VERSIONS

from shim.conformance.examples.adapting import free_ports

# Paddle cannot be initialised twice in a process, and the processes are used again.
_variables: dict[str, str] = {}
_groups: dict[tuple[int, ...], Any] = {}  # Paddle's; making one fails now and then, so that each is made once


@contextmanager
def both() -> Iterator[tuple[Any, Any]]:
    """Give Paddle's own module and this project's of the same version, each initialised with all ranks.

    Until the end, the environment holds what Paddle's launcher would put there.
    """
    ours = VERSIONS["3"]
    ours.init_parallel_env()
    if not _variables:
        _variables.update(_launched(ours))
    before = dict(os.environ)
    os.environ.update(_variables)
    try:
        import paddle.distributed as theirs

        theirs.init_parallel_env()  # from the second time on, it returns the group there is
        yield theirs, ours
    finally:
        os.environ.clear()
        os.environ.update(before)
        ours.destroy_process_group()


def group_in(dist: Any, members: list[int]) -> Any:
    """Return the group of *members*, of the real Paddle the same one every time; every rank calls this."""
    if dist is VERSIONS["3"]:
        return dist.new_group(members)
    if tuple(members) not in _groups:
        _groups[tuple(members)] = dist.new_group(members)
    return _groups[tuple(members)]


def _launched(ours: Any) -> dict[str, str]:
    endpoints = [_free_endpoints(ours.get_world_size())]
    ours.broadcast_object_list(endpoints, 0)
    return {
        "PADDLE_DISTRI_BACKEND": "gloo",
        "PADDLE_TRAINER_ID": str(ours.get_rank()),
        "PADDLE_TRAINERS_NUM": str(ours.get_world_size()),
        "PADDLE_CURRENT_ENDPOINT": endpoints[0][ours.get_rank()],
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints[0]),
    }


def _free_endpoints(count: int) -> list[str]:
    return [f"127.0.0.1:{port}" for port in free_ports(count)]
