"""How torch's backends carry a message, when sender and receiver have found each other."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from shim.core.engines.accelerators.links import BackendLinks
from shim.core.engines.accelerators.parts import flat
from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.engines.devices.messages import Message, Messages

_UPWARDS, _DOWNWARDS = COLLECTIVE_TAG + 2, COLLECTIVE_TAG + 3


class BackendMessages(Messages[BackendLinks]):
    """See ``Messages``; *links* are those of the group. Each direction has a backend of two ranks, the first of which sends."""

    def check_form(self, tensor: Any) -> None:
        """See ``Messages``."""
        flat(tensor)

    def put(self, direction: tuple[int, int], message: Message, is_wanted: bool) -> Any:
        """See ``Messages``."""
        byte, is_sender = sys.modules["torch"].uint8, self.links.rank == direction[0]

        def move(backend: Any) -> None:
            if message.size:
                whole = flat(message.tensor)
                data = whole.view(byte) if is_wanted else whole.new_empty(message.size, dtype=byte)
                (backend.send([data], 1, 0) if is_sender else backend.recv([data], 0, 0)).wait()

        tag = _UPWARDS if direction[0] < direction[1] else _DOWNWARDS
        return self.links.put(partial(self.links.of_two, direction, tag), message.begin, message.tensor, move)
