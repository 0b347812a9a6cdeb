"""Which ranks share a device, and what their operations go over for that reason."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ctypes import sizeof
from typing import TYPE_CHECKING

from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.nccl.communicator import Communicator, NcclCommunicator, new_identity
from shim.core.engines.nccl.library import UniqueId
from shim.core.engines.nccl.one_device.communicator import OneDevice
from shim.core.engines.nccl.one_device.meeting import Meeting
from shim.errors import EngineError

if TYPE_CHECKING:
    from shim.core.engines.nccl.communicators import Communicators

__all__ = ["between_all", "between_two"]

# Tags of engines, as COLLECTIVE_TAG is: of all ranks' meetings, and of two ranks' for messages from the lower rank and to it.
_OF_ALL, _UPWARDS, _DOWNWARDS = (COLLECTIVE_TAG + number for number in (1, 2, 3))
_OVER_NCCL, _ON_ONE_DEVICE, _ON_SOME = b"n", b"o", b"s"
_DEVICE_BYTES = 17
_SHARES_DEVICES = 23000  # the first NCCL that can be told to
_HALF_FOR_ALL, _HALF_FOR_MESSAGES = 8 << 20, 1 << 20  # bytes of a pool's


def between_all(communicators: Communicators) -> Communicator:
    """Return the communicator of all ranks, which all of them make at once. Raises EngineError where some of them share a device."""
    under, rank, size = communicators.under, communicators.rank, communicators.size
    device, answer = bytearray(_device_of(communicators)), bytearray(1 + sizeof(UniqueId))
    if rank == 0:
        rooms = [device, *(bytearray(_DEVICE_BYTES) for _ in range(1, size))]
        for peer in range(1, size):
            under.receive(rooms[peer], peer, COLLECTIVE_TAG, True)
        kind = _kind_of(rooms)
        answer[:1] = kind
        if kind == _OVER_NCCL:
            answer[1:] = new_identity(communicators.nccl)
        for peer in range(1, size):
            under.send(answer, peer, COLLECTIVE_TAG, True)
    else:
        under.send(device, 0, COLLECTIVE_TAG, True)
        under.receive(answer, 0, COLLECTIVE_TAG, True)
    if answer.startswith(_ON_SOME):
        raise EngineError(
            "some ranks of the group share a device, and others have another one\n"
            'Have all of them use one device, or each one its own, or make the group with backend="gloo".'
        )
    if answer.startswith(_ON_ONE_DEVICE):
        meeting = Meeting(under, range(size), rank, _OF_ALL)
        return OneDevice(communicators.cuda, communicators.number, meeting, communicators.check_intact, _HALF_FOR_ALL)
    return NcclCommunicator(communicators.nccl, communicators.cuda, answer[1:], size, rank)


def between_two(communicators: Communicators, key: tuple[int, int]) -> Communicator:
    """Return the communicator for messages from one rank to another, *key*, which both make at once."""
    rank = key.index(communicators.rank)
    meeting = Meeting(communicators.under, key, rank, _UPWARDS if key[0] < key[1] else _DOWNWARDS)
    if _kind_of(meeting.exchange(_device_of(communicators))) == _ON_ONE_DEVICE:
        return OneDevice(
            communicators.cuda, communicators.number, meeting, communicators.check_intact, _HALF_FOR_MESSAGES
        )
    identity = new_identity(communicators.nccl) if rank == 0 else bytes(sizeof(UniqueId))
    return NcclCommunicator(communicators.nccl, communicators.cuda, meeting.exchange(identity)[0], 2, rank)


def _device_of(communicators: Communicators) -> bytes:
    """Return what names this rank's device, and whether NCCL has been told that it may be shared."""
    is_told = os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE", "0") != "0"
    may_share = is_told and communicators.nccl.version_number >= _SHARES_DEVICES
    return communicators.cuda.identity_of(communicators.number) + bytes([may_share])


def _kind_of(devices: Sequence[bytes | bytearray]) -> bytes:
    different = len({bytes(device[:-1]) for device in devices})
    if different == len(devices) or any(device[-1] for device in devices):
        return _OVER_NCCL
    return _ON_ONE_DEVICE if different == 1 else _ON_SOME
