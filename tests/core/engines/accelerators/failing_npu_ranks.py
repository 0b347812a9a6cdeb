"""What the ranks of ``test_accelerators`` do whose device, backend or rank fails."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fake_npu import Hccl
from npu_ranks import ME, SUM, filled, summed, world

from shim.core import calls
from shim.core.engines.accelerators.engine import AcceleratorEngine
from shim.errors import EngineError, PeerLostError, ShimError


def fail_on_one_rank(operation: str) -> str:
    """Return what this rank is told when the backend fails on the last rank alone."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        tensor, room = filled(1.0, 6), filled(1.0, 6)
        summed(group, tensor)
        if group.rank == group.size - 1:
            patch.setattr(AcceleratorEngine, f"move_{operation}", _fail)
        with pytest.raises(ShimError) as caught:
            getattr(calls, operation)(ME, group, room, tensor, *([SUM] if operation == "all_reduce" else []), now=True)
    return str(caught.value)


def _fail(*_: object) -> None:
    raise TypeError("the device is on fire\nand more")


def fail_in_a_message() -> str:
    """Return what this rank is told when the backend fails on rank 1 alone, in a message from rank 0."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        if group.rank == 1:
            patch.setattr(Hccl, "__init__", _fail)
        message = filled(1.0)
        made: list[Callable[[], Any]] = [
            lambda: calls.send(ME, group, message, 1, now=True),
            lambda: calls.receive(ME, group, message, 0, now=True),
            lambda: summed(group, message),
        ]
        with pytest.raises(ShimError) as caught:
            made[group.rank]()
    return str(caught.value)


def lose_an_event() -> None:
    """See that an error of the device is told, and ends the group."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        summed(group, filled(1.0))
        patch.setattr(torch, "Event", _BrokenEvent)
        work = calls.all_reduce(ME, group, filled(1.0), filled(1.0), SUM)
        work.start()
        until = time.monotonic() + 5.0
        told = ""
        while not told and time.monotonic() < until:
            try:
                summed(group, filled(1.0))
            except EngineError as error:
                told = str(error)
        assert "the device has failed: no power" in told


class _BrokenEvent(torch.Event):
    def query(self) -> bool:
        raise RuntimeError("no power\nat all")


def abort_what_is_not_reached() -> None:
    """See that the end of an operation that was aborted is not taken for its success."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        summed(group, filled(1.0))
        _LateEvent.backend = group._of_devices["extension"].links._made[-1].backend
        patch.setattr(torch, "Event", _LateEvent)
        work = calls.all_reduce(ME, group, filled(1.0), filled(1.0), SUM)
        work.start()
        links = group._of_devices["extension"].links
        while not any(links._under_way.values()):
            time.sleep(0.001)
        links.end(EngineError("enough"))
        with pytest.raises(EngineError, match="enough"):
            work.wait()


class _LateEvent(torch.Event):
    """One that is reached when the backend was aborted, as those of a device are."""

    backend: Any

    def query(self) -> bool:
        return self.backend.is_aborted


def lose_a_rank(is_first: bool) -> tuple[float, str]:
    """Return the seconds until the survivors' collective, the *first* one or a later one, has ended after a rank's death in it, and what they are told."""
    with world() as group:
        tensor = filled(1.0)
        if not is_first:
            summed(group, tensor)
        if group.rank == 1:
            Hccl.allreduce = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[attr-defined]
        began = time.monotonic()
        with pytest.raises(PeerLostError) as caught:
            summed(group, tensor)
    return time.monotonic() - began, str(caught.value)
