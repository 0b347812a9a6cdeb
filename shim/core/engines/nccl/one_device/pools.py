"""Memory of the device that the ranks' processes have in common. Each exports a pool of its own; the tensors of users are never exported."""

from __future__ import annotations

from ctypes import byref, c_void_p, sizeof

from shim.core.engines.nccl.driver import Driver, IpcHandle

__all__ = ["HANDLE_BYTES", "OpenedPool", "OwnPool"]

HANDLE_BYTES = sizeof(IpcHandle)
_PEER_ACCESS = 1


class OwnPool:
    """A pool of *size* bytes of this rank's, on the current device."""

    def __init__(self, cuda: Driver, size: int) -> None:
        self._cuda = cuda
        self._at = c_void_p()
        cuda.call("cuMemAlloc_v2", byref(self._at), size)
        self.at = self._at.value or 0

    def export(self) -> bytes:
        """Return what other processes open it with, in HANDLE_BYTES."""
        handle = IpcHandle()
        self._cuda.call("cuIpcGetMemHandle", byref(handle), self._at)
        return bytes(handle)

    def close(self) -> None:
        """Free it; no other process has it open."""
        self._cuda.call("cuMemFree_v2", self._at)


class OpenedPool:
    """The pool of another process, which has exported it as *handle*."""

    def __init__(self, cuda: Driver, handle: bytes) -> None:
        self._cuda = cuda
        self._at = c_void_p()
        cuda.call("cuIpcOpenMemHandle_v2", byref(self._at), IpcHandle.from_buffer_copy(handle), _PEER_ACCESS)
        self.at = self._at.value or 0

    def close(self) -> None:
        """Let its owner free it."""
        self._cuda.call("cuIpcCloseMemHandle", self._at)
