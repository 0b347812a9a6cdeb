"""Where the ranks that share a backend of torch's meet: a store that nobody else can write to."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shim.core.engines.network.store import store_over

if TYPE_CHECKING:
    from shim.core.engines.base import Engine

__all__ = ["Meeting"]

_PLACE_BYTES = 64
_UNTIL_ALL_ARE_THERE = 300.0  # seconds that a rank waits for what another one writes


class Meeting:
    """The store of the ranks *members* of the group that *under* serves, of which the caller is number *rank*; all of them make it at once.

    Nobody else uses *tag* between them.
    Ranks of one host share a file in memory, which the first of them holds; those of several hosts their control connections, where
    they find their keys by a name that the first of them draws.
    """

    def __init__(self, under: Engine, members: Sequence[int], rank: int, tag: int) -> None:
        self._file = -1
        self.name = self._told_by_first(under, members, rank, tag)
        if under.control is not None:
            self.store: Any = store_over(under.control, self.name, _UNTIL_ALL_ARE_THERE)
        else:
            from torch._C._distributed_c10d import FileStore  # torch is there: its tensors are

            self.store = FileStore(self.name, len(members))

    def _told_by_first(self, under: Engine, members: Sequence[int], rank: int, tag: int) -> str:
        said = bytearray(_PLACE_BYTES)
        if rank == 0:
            if under.control is not None:
                name = secrets.token_hex(16)
            else:
                self._file = os.memfd_create("shim store")
                name = f"/proc/{os.getpid()}/fd/{self._file}"
            said[:] = name.encode().ljust(_PLACE_BYTES)
            for member in members[1:]:
                under.send(said, member, tag, True)
        else:
            under.receive(said, members[0], tag, True)
        return said.decode().rstrip()

    def close(self) -> None:
        """Let it go, when the backend is gone."""
        self.store = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
