"""Which ranks share a device, and what their operations go over for that reason."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ctypes import sizeof
from typing import TYPE_CHECKING

from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.nccl.device_link import DeviceLink, NcclLink, new_identity
from shim.core.engines.nccl.library import UniqueId
from shim.core.engines.nccl.one_device_link import OneDeviceLink
from shim.core.engines.nccl.pool_turns import HostExchange
from shim.errors import EngineError

if TYPE_CHECKING:
    from shim.core.engines.nccl.device_links import DeviceLinks

# Tags of engines, as COLLECTIVE_TAG is: of all ranks, and of two ranks for messages from the lower rank and to it.
_OF_ALL, _UPWARDS, _DOWNWARDS = (COLLECTIVE_TAG + number for number in (1, 2, 3))
_OVER_NCCL, _ON_ONE_DEVICE, _ON_SOME = b"n", b"o", b"s"
_DEVICE_BYTES = 17
_SHARES_DEVICES = 23000  # the first NCCL that can be told to
_HALF_FOR_ALL, _HALF_FOR_MESSAGES = 8 << 20, 1 << 20  # bytes of a pool's


def between_all(links: DeviceLinks) -> DeviceLink:
    """Return the link of all ranks, which all of them make at once. Raises EngineError where some of them share a device."""
    under, rank, size = links.under, links.rank, links.size
    device, answer = bytearray(_device_of(links)), bytearray(1 + sizeof(UniqueId))
    if rank == 0:
        rooms = [device, *(bytearray(_DEVICE_BYTES) for _ in range(1, size))]
        for peer in range(1, size):
            under.receive(rooms[peer], peer, COLLECTIVE_TAG, True)
        kind = _kind_of(rooms)
        answer[:1] = kind
        if kind == _OVER_NCCL:
            answer[1:] = new_identity(links.nccl)
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
        processes = HostExchange(under, range(size), rank, _OF_ALL)
        return OneDeviceLink(links.cuda, links.number, processes, links.check_intact, _HALF_FOR_ALL)
    return NcclLink(links.nccl, links.cuda, answer[1:], size, rank)


def between_two(links: DeviceLinks, key: tuple[int, int]) -> DeviceLink:
    """Return the link for messages from one rank to another, *key*, which both make at once."""
    rank = key.index(links.rank)
    processes = HostExchange(links.under, key, rank, _UPWARDS if key[0] < key[1] else _DOWNWARDS)
    if _kind_of(processes.exchange(_device_of(links))) == _ON_ONE_DEVICE:
        return OneDeviceLink(links.cuda, links.number, processes, links.check_intact, _HALF_FOR_MESSAGES)
    identity = new_identity(links.nccl) if rank == 0 else bytes(sizeof(UniqueId))
    return NcclLink(links.nccl, links.cuda, processes.exchange(identity)[0], 2, rank)


def _device_of(links: DeviceLinks) -> bytes:
    """Return what names this rank's device, and whether NCCL has been told that it may be shared."""
    is_told = os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE", "0") != "0"
    may_share = is_told and links.nccl.version_number >= _SHARES_DEVICES
    return links.cuda.identity_of(links.number) + bytes([may_share])


def _kind_of(devices: Sequence[bytes | bytearray]) -> bytes:
    different = len({bytes(device[:-1]) for device in devices})
    if different == len(devices) or any(device[-1] for device in devices):
        return _OVER_NCCL
    return _ON_ONE_DEVICE if different == 1 else _ON_SOME
