"""Memory of the device that the ranks' processes have in common. Each exports a pool of its own; the tensors of users are never exported."""

from __future__ import annotations

from ctypes import byref, c_void_p, sizeof
from typing import NamedTuple

from shim.core.engines.nccl.driver import Driver, Event, IpcHandle

__all__ = ["HALF", "HANDLES", "Half", "OpenedPool", "OwnPool"]

HALF = 8 << 20  # bytes: one is filled while the other one is still read
HANDLES = 5 * sizeof(IpcHandle)  # bytes of a pool's
_PEER_ACCESS = 1


class Half(NamedTuple):
    """Half of a pool, and how far its use has come: its owner *filled* it, and has *read* the same half of every pool."""

    at: int
    filled: Event
    read: Event


class OwnPool:
    """This rank's pool, on the current device."""

    def __init__(self, cuda: Driver) -> None:
        self._cuda = cuda
        self._at = c_void_p()
        cuda.call("cuMemAlloc_v2", byref(self._at), 2 * HALF)
        self.halves = [
            Half((self._at.value or 0) + half * HALF, Event(cuda, shared=True), Event(cuda, shared=True))
            for half in range(2)
        ]

    def export(self) -> bytes:
        """Return by what the other processes open it, in HANDLES bytes."""
        memory = IpcHandle()
        self._cuda.call("cuIpcGetMemHandle", byref(memory), self._at)
        events = (event.export() for half in self.halves for event in (half.filled, half.read))
        return b"".join(bytes(handle) for handle in (memory, *events))

    def close(self) -> None:
        """Free it; no other process has it open."""
        self._cuda.call("cuMemFree_v2", self._at)


class OpenedPool:
    """The pool of another process, by its *handles*."""

    def __init__(self, cuda: Driver, handles: bytes) -> None:
        self._cuda = cuda
        self._at = c_void_p()
        size = sizeof(IpcHandle)
        memory, *events = (IpcHandle.from_buffer_copy(handles, at) for at in range(0, HANDLES, size))
        cuda.call("cuIpcOpenMemHandle_v2", byref(self._at), memory, _PEER_ACCESS)
        opened = [Event(cuda, opened=event) for event in events]
        self.halves = [
            Half((self._at.value or 0) + half * HALF, opened[2 * half], opened[2 * half + 1]) for half in range(2)
        ]

    def close(self) -> None:
        """Let its owner free it."""
        self._cuda.call("cuIpcCloseMemHandle", self._at)
