"""How NCCL carries a message, when sender and receiver have found each other."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from shim.core.engines.devices.messages import Message, Messages
from shim.core.engines.nccl.device_links import DeviceLinks
from shim.core.engines.nccl.link_choice import between_two

if TYPE_CHECKING:
    from shim.core.engines.nccl.driver import Event

_BYTE = 1  # NCCL's uint8


class NcclMessages(Messages[DeviceLinks]):
    """See ``Messages``; *links* are those of the group."""

    def put(self, direction: tuple[int, int], message: Message, is_wanted: bool) -> Event:
        """See ``Messages``."""
        links = self.links
        is_sender = links.rank == direction[0]
        ((at, _),) = message.request.input_places if is_sender else message.request.output_places
        made = links.of(direction, partial(between_two, links, direction))
        stream = made.stream.handle
        with links.launching(made):
            message.begin.make_wait(stream)
            has_room = is_wanted or not message.size
            with nullcontext(at) if has_room else self.links.cuda.room(message.size, stream) as place:
                made.launch("ncclSend" if is_sender else "ncclRecv", place, message.size, _BYTE, int(is_sender), stream)
            return links.end_of(stream, message.request)
