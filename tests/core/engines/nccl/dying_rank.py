"""What the ranks of ``test_deaths`` do."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
from fake_device import FakeTensor, Stream, load, on_stream
from gates import Gate

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.errors import PeerLostError

ME = Caller("test")


def _in_a_collective(shares: bool) -> tuple[groups.ProcessGroup, FakeTensor, Stream, Gate]:
    """Give the world, and a tensor and the stream of a sum that is under way on rank 0's device and behind a closed gate on rank 1's; both have one, or *shares* says that it is the same."""
    load()
    group = groups.enter_world(ME, "test")
    number = 0 if shares else group.rank
    tensor, stream, gate = FakeTensor(np.ones(4), number), Stream(number), Gate()
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    tensor.values()
    if group.rank == 1:
        gate.close(stream)
    with on_stream(stream):
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    return group, tensor, stream, gate


def lose_a_rank(leaves_at_once: bool, shares: bool) -> tuple[float, str]:
    """Return the seconds until the survivor of a collective that is under way on the device gets its stream back, and what its next call is told.

    One that *leaves_at_once* makes that call before, and leaves the world without waiting for the stream.
    """
    group, tensor, stream, _ = _in_a_collective(shares)
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began, told = time.monotonic(), "nothing"
    if not leaves_at_once:
        stream.synchronize()
    try:
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    except PeerLostError as error:
        told = str(error)
    if leaves_at_once:
        groups.leave_world("test")
        stream.synchronize()
    return time.monotonic() - began, told


def give_up(shares: bool) -> tuple[float, str]:
    """Return the seconds until a rank that gives the world up, or the other one, is done with what is on its device, and what its next call is told."""
    group, tensor, stream, gate = _in_a_collective(shares)
    calls.barrier(ME, group, now=True)
    began = time.monotonic()
    if group.rank == 0:
        group._close("KeyError: 'weight'")
        return time.monotonic() - began, ""
    time.sleep(0.5)  # until the other one has given up
    gate.open()
    stream.synchronize()
    try:
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    except PeerLostError as error:
        return time.monotonic() - began, str(error)
    return time.monotonic() - began, "nothing"
