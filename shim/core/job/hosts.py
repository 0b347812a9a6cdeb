"""Whether a host's name or address is this host's."""

from __future__ import annotations

import socket

from shim.errors import ArgumentError

__all__ = ["another_host"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def another_host(source: str, host: str) -> str:
    """Return what shows that *host*, which *source* gave, is not this host; nothing where it is. Raises ArgumentError if no host has the name."""
    if host in _LOOPBACK or host == socket.gethostname():
        return ""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise ArgumentError(f"{source} must be a name or address of this host, got {host}: {error}") from None
    if any(_is_mine(family, address) for family, _, _, _, address in addresses):
        return ""
    return f"{source} gives {host}, which is not this host, {socket.gethostname()}"


def _is_mine(family: int, address: tuple[object, ...]) -> bool:
    """Tell whether an address is one of this host's: only those can be bound. No packet is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True
