"""What a result says of the machine it was taken on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_SYS = Path("/sys")


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def bind_to_share(rank: int, ranks: int) -> None:
    """Let this process, and the threads it will have, run on its share of the processors: as many for each of *ranks*, at least one."""
    usable = sorted(os.sched_getaffinity(0))
    share = max(1, len(usable) // ranks)
    first = rank * share % len(usable)
    os.sched_setaffinity(0, set(usable[first : first + share]))


def bind_to_processor(rank: int) -> None:
    """Let this process, and the threads it will have, run on one processor alone: one after the other, by *rank*."""
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {usable[rank % len(usable)]})


def available_memory() -> int:
    """Return the bytes that can be taken without swapping."""
    return _field(Path("/proc/meminfo"), "MemAvailable") * 1024


def describe() -> dict[str, object]:
    """Return processor, caches, memory, kernel and Python, and how busy the machine was."""
    return {
        "processor": _model(),
        "processors": os.cpu_count(),
        "processors_usable": processors(),
        "caches": _caches(),
        "memory_bytes": _field(Path("/proc/meminfo"), "MemTotal") * 1024,
        "hypervisor": "hypervisor" in _text(Path("/proc/cpuinfo")),
        "kernel": platform.release(),
        "transparent_huge_pages": _chosen(_SYS / "kernel/mm/transparent_hugepage/enabled"),
        "python": platform.python_version(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }


def _model() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return platform.machine()


def _caches() -> dict[str, str]:
    found = {}
    for index in sorted((_SYS / "devices/system/cpu/cpu0/cache").glob("index*")):
        if _text(index / "type").strip() != "Instruction":
            found[f"L{_text(index / 'level').strip()}"] = _text(index / "size").strip()
    return found


def _chosen(file: Path) -> str:
    return next((word.strip("[]") for word in _text(file).split() if word.startswith("[")), "")


def _field(file: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in _text(file).splitlines() if line.startswith(f"{name}:")), 0)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:  # another kernel has it elsewhere, or not at all
        return ""
