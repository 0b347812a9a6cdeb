"""Addresses that ranks can listen on."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_addresses(count: int) -> list[str]:
    """Return so many addresses of this host, for programs that also use a framework's own communication."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def free_ports(count: int) -> list[int]:
    """Return so many ports that are free on all addresses of this host."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]
