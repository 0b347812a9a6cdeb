"""Whether a host's name or address is this host's."""

from __future__ import annotations

import socket

from shim.errors import ArgumentError, UnsupportedError

__all__ = ["require_one_host", "require_this_host", "several_hosts"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def several_hosts(evidence: str) -> UnsupportedError:
    """Return the error for ranks that are not all on one host, of which *evidence* tells."""
    return UnsupportedError(
        f"the ranks are on several hosts, and the shared_memory engine serves those of one: {evidence}\n"
        "The engines that could serve them, c10d, mpi and hierarchical, are not in this release."
    )


def require_one_host(is_one: bool, evidence: str) -> None:
    """Raise UnsupportedError with *evidence* unless all ranks are on one host."""
    if not is_one:
        raise several_hosts(evidence)


def require_this_host(source: str, host: str) -> None:
    """Raise UnsupportedError unless *host*, which *source* gave, is this host, and ArgumentError if no host has the name."""
    if host in _LOOPBACK or host == socket.gethostname():
        return
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise ArgumentError(f"{source} must be a name or address of this host, got {host}: {error}") from None
    if not any(_is_mine(family, address) for family, _, _, _, address in addresses):
        raise several_hosts(f"{source} gives {host}, which is not this host, {socket.gethostname()}")


def _is_mine(family: int, address: tuple[object, ...]) -> bool:
    """Tell whether an address is one of this host's: only those can be bound. No packet is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True
