"""Where the ranks that share a backend of torch's meet."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shim.core.engines.network.store import ControlKeys, torch_store
from shim.core.job.stores import LocalStore

if TYPE_CHECKING:
    from shim.core.engines.base import Engine

_NAME_BYTES = 32
_UNTIL_ALL_ARE_THERE = 300.0  # seconds


class Meeting:
    """The ``store`` of the ranks *members* of the group that *under* serves, of which the caller is number *rank*; all of them make it at once.

    Nobody else uses *tag* between them. The first of them draws the ``name`` of the store, which lies in its process, or, where the group has
    several hosts, in that of the world's rank 0. Who waits for what another rank has to write gets what *check* raises.
    """

    def __init__(self, under: Engine, members: Sequence[int], rank: int, tag: int, check: Callable[[], object]) -> None:
        name = bytearray(secrets.token_hex(_NAME_BYTES // 2).encode())
        if rank > 0:
            under.receive(name, members[0], tag, True)
        self.name = f"shim {name.decode()}"
        control = under.control
        self._keys = LocalStore(self.name) if control is None else ControlKeys(control, self.name)
        self.store: Any = torch_store(self._keys, _UNTIL_ALL_ARE_THERE, check)
        if rank == 0:
            for member in members[1:]:
                under.send(name, member, tag, True)

    def close(self) -> None:
        """Let go of what it holds; a backend that still asks is told that the store is lost."""
        self._keys.close()
