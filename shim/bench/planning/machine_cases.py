"""What is measured of the machine itself, by the floor alone."""

from __future__ import annotations

from shim.bench.planning.cases import Case

LINE = "line_round_trip"  # one cache line, there and back between ranks 0 and 1
MEMORY_BYTES = {  # copied from a private tensor to another by all ranks at once
    "memcpy_cache": 128 * 1024,
    "memcpy_dram": 128 * 1024 * 1024,
}


def machine_cases(ranks: int) -> list[Case]:
    """Return the cases that say what *ranks* processes of this machine can do at once."""
    return [Case(LINE, ranks, "int64", 8), *(Case(name, ranks, "int64", size) for name, size in MEMORY_BYTES.items())]
