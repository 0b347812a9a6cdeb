"""What the ranks of ``test_deaths`` do."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
from fake_device import FakeTensor, Stream, load, on_stream
from gates import Gate

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.nccl import device_link
from shim.core.reduce_ops import ReduceOp
from shim.errors import PeerLostError

ME = Caller("test")


def _in_a_collective() -> tuple[groups.ProcessGroup, FakeTensor, Stream, Gate]:
    """Give the world, and a tensor and the stream of a sum that is under way on rank 0's device and behind a closed gate on rank 1's."""
    load()
    group = groups.enter_world(ME, "test")
    tensor, stream, gate = FakeTensor(np.ones(4), group.rank), Stream(group.rank), Gate()
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    tensor.values()
    if group.rank == 1:
        gate.close(stream)
    with on_stream(stream):
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    return group, tensor, stream, gate


def lose_a_rank(leaves_at_once: bool) -> tuple[float, str]:
    """Return the seconds until the survivor of a collective that is under way on the device gets its stream back, and what its next call is told.

    One that *leaves_at_once* makes that call before, and leaves the world without waiting for the stream.
    """
    group, tensor, stream, _ = _in_a_collective()
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


def lose_a_rank_that_shares() -> tuple[float, str]:
    """Return the seconds until the call of a rank that shares its device with one that dies has ended, and its stream, and what it was told."""
    load()
    group = groups.enter_world(ME, "test")
    tensor, stream, gate = FakeTensor(np.ones(4)), Stream(0), Gate()
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    tensor.values()
    if group.rank == 1:
        gate.close(stream)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    began, told = time.monotonic(), "nothing"
    with on_stream(stream):
        try:
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
        except PeerLostError as error:
            told = str(error)
    stream.synchronize()
    groups.leave_world("test")
    return time.monotonic() - began, told


def lose_a_rank_while_connecting() -> tuple[float, str]:
    """Return the seconds until the call of a rank has ended whose library waits for one that dies before it comes there, and what it was told."""
    load()
    group = groups.enter_world(ME, "test")
    tensor = FakeTensor(np.ones(4), group.rank)
    if group.rank == 1:
        device_link.NcclLink.__init__ = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign, assignment]
    began, told = time.monotonic(), "nothing"
    try:
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
    except PeerLostError as error:
        told = str(error)
    groups.leave_world("test")
    return time.monotonic() - began, told


def give_up() -> tuple[float, str]:
    """Return the seconds until a rank that gives the world up, or the other one, is done with what is on its device, and what its next call is told."""
    group, tensor, stream, gate = _in_a_collective()
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
