"""Programs of Debian packages that some tests need: without one they are skipped, and fail where CI=true is set."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from typing import NoReturn

import pytest

_PACKAGES = {
    "chromium": "chromium",
    "git": "git",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "patch": "patch",
    "tc": "iproute2",
    "unshare": "util-linux",
}
_MISSING = "missing Debian packages: "


def missing(programs: Iterable[str]) -> list[str]:
    """Return the packages of those *programs* that are not on the path."""
    return sorted({_PACKAGES[program] for program in programs if shutil.which(program) is None})


def need(*programs: str) -> None:
    """Skip the test where one of *programs* is not on the path."""
    if packages := missing(programs):
        skip(_MISSING + ", ".join(packages))


def skip(reason: str) -> NoReturn:
    """Skip the test for *reason*; where CI=true is set it fails instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def told(reasons: Sequence[str]) -> str:
    """Return the line of pytest's summary about tests skipped for *reasons*; nothing where no package was missing."""
    lacking = [reason.partition(_MISSING)[2] for reason in reasons if _MISSING in reason]
    if not lacking:
        return ""
    packages = sorted({package for line in lacking for package in line.split(", ")})
    return f"{len(lacking)} tests skipped; to run them: apt-get install {' '.join(packages)}"
