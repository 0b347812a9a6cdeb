"""What a collective moves on a cluster and how long that takes, by the model of docs/scaling.md: latencies and bytes, inside hosts and between them.

Bytes are those that the busiest member sends. Ranks are on hosts of ``per_host`` each, in their order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from shim.errors import ArgumentError
from shim.trace.calls import Shape

_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LINK = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(B|bit)/s\s*,\s*(\d+(?:\.\d+)?)\s*(ns|us|ms)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
_BITS = 8.0


@dataclass(frozen=True)
class Link:
    """What each rank sends in one direction: bytes per second, and seconds that a message takes besides."""

    rate: float
    latency: float

    @classmethod
    def of(cls, text: str) -> Link:
        """Read "400GB/s,5us" or "200Mbit/s,60us". Raises ArgumentError."""
        found = _LINK.fullmatch(text.strip())
        if not found or not float(found[1]):
            raise ArgumentError(f"a link is a rate and a latency, such as 50GB/s,15us, got {text!r}")
        rate = float(found[1]) * _UNITS[found[2]] / (1.0 if found[3] == "B" else _BITS)
        return cls(rate, float(found[4]) * _SECONDS[found[5]])

    def text(self) -> str:
        unit = next((name for name, scale in reversed(_UNITS.items()) if self.rate >= scale), "")
        return f"{self.rate / _UNITS[unit]:.4g} {unit}B/s and {self.latency * 1e6:.4g} us"


@dataclass(frozen=True)
class Cluster:
    """Hosts of *per_host* ranks each, which are connected *inside* and *across*."""

    per_host: int
    inside: Link
    across: Link

    def seconds(self, use: Use) -> float:
        """Return how long a call takes that uses the links so."""
        inside = use.steps * self.inside.latency + use.inside / self.inside.rate
        return inside + use.messages * self.across.latency + use.across / self.across.rate


@dataclass(frozen=True)
class Use:
    """What one call uses: bytes *inside* a host and *across* hosts, and *steps* and *messages* there that wait for one before them."""

    algorithm: str
    inside: float = 0.0
    across: float = 0.0
    steps: int = 0
    messages: int = 0


@dataclass(frozen=True)
class Layout:
    """Where the members of a group are: the *hosts* of each of its ranks, in their order."""

    hosts: tuple[int, ...]

    @cached_property
    def count(self) -> int:
        return len(set(self.hosts))

    @cached_property
    def most(self) -> int:
        """The most members on one host."""
        return max(map(self.hosts.count, set(self.hosts)))

    def text(self) -> str:
        return f"{len(self.hosts)} on {self.count} host{'s' * (self.count != 1)}"


def layout_of(ranks: Sequence[int], per_host: int) -> Layout:
    return Layout(tuple(rank // per_host for rank in ranks))


def use_of(shape: Shape, layout: Layout, rank: int, per_host: int) -> Use:
    """Return what a call of *shape* by world rank *rank* uses, whose group is at *layout*."""
    if shape.is_message:
        is_across = shape.peer is not None and shape.peer // per_host != rank // per_host
        return Use("message", 0, shape.bytes, 0, 1) if is_across else Use("message", shape.bytes, 0, 1, 0)
    if len(layout.hosts) == 1 or shape.collective not in _MODELS:
        return Use("nothing is sent")
    return use_of_bytes(shape.collective, shape.bytes, len(layout.hosts), layout.count, layout.most)


def use_of_bytes(collective: str, size: float, count: int, hosts: int, most: int) -> Use:
    """Return what a rank uses among *count* on so many *hosts*, with *most* of them on one. *size* is that of a whole input or output."""
    return _MODELS[collective](float(size), count, hosts, most)


def pairs_of(shape: Shape, layout: Layout, use: Use) -> Iterator[tuple[int, int, float]]:
    """Tell which bytes go from host to host in a whole collective that uses its links as *use* says."""
    hosts = list(dict.fromkeys(layout.hosts))
    if len(hosts) < 2 or not use.across:
        return
    if shape.collective == "all_to_all":
        each = shape.bytes / len(layout.hosts)
        for one in hosts:
            for other in hosts:
                if one != other:
                    yield one, other, each * layout.hosts.count(one) * layout.hosts.count(other)
        return
    root = next((host for rank, host in zip(shape.group.ranks, layout.hosts, strict=True) if rank == shape.root), None)
    if root is None:  # around the ring of hosts
        for place, one in enumerate(hosts):
            yield one, hosts[(place + 1) % len(hosts)], use.across * layout.most
        return
    for host in hosts:
        if host != root:
            size = shape.bytes / (len(hosts) - 1) if shape.collective in ("gather", "scatter") else shape.bytes
            yield (host, root, size) if shape.collective in ("gather", "reduce") else (root, host, size)


def _log2(count: int) -> int:
    return math.ceil(math.log2(count)) if count > 1 else 0


def _halves(size: float, count: int, hosts: int, most: int, times: int = 1) -> Use:
    """Halves or doubles what each rank has, within hosts and then between them, where each rank of a host carries a part of its data."""
    return Use(
        "halving and doubling" if hosts == 1 else "hierarchical",
        times * size * (most - 1) / most,
        times * size * (hosts - 1) / hosts / most,
        times * _log2(most),
        times * _log2(hosts),
    )


def _tree(size: float, count: int, hosts: int, most: int) -> Use:
    return Use("tree", size * bool(_log2(most)), size * _log2(hosts), _log2(most), _log2(hosts))


def _direct(size: float, count: int, hosts: int, most: int) -> Use:
    return Use("direct", size * (most - 1) / count, size * (count - most) / count, int(most > 1), int(hosts > 1))


_MODELS: dict[str, Callable[[float, int, int, int], Use]] = {
    "all_reduce": lambda size, count, hosts, most: _halves(size, count, hosts, most, 2),
    "reduce_scatter": _halves,
    "all_gather": _halves,
    "barrier": lambda size, count, hosts, most: _halves(0.0, count, hosts, most, 2),
    "broadcast": _tree,
    "reduce": _tree,
    "all_to_all": _direct,
    "gather": _direct,
    "scatter": _direct,
}
