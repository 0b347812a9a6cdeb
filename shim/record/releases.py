"""Which release of its framework a frontend follows: the one that ``SHIM_API`` asks for, the installed one, or the newest recorded."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

from shim.errors import ArgumentError
from shim.record import FRONTENDS, recorded_versions

VARIABLE = "SHIM_API"
PACKAGES = {"torch": ("torch",), "paddle": ("paddlepaddle", "paddlepaddle-gpu"), "mindspore": ("mindspore",)}


class Followed(NamedTuple):
    """The release that a frontend follows."""

    record: str  # the name of its record, such as torch-2.13.0
    why: str


@functools.cache
def followed_by(frontend: str) -> Followed:
    """Return the release that *frontend*, such as ``shim.frontends.torch``, follows in this process.

    That is the recorded one with the installed version's first two numbers, or else the newest one before it. Warns once of an installed
    version that is older than all. Raises ArgumentError for a ``SHIM_API`` that names no recorded release.
    """
    newest = FRONTENDS[frontend]
    framework = newest.partition("-")[0]
    choices = releases_of(frontend)
    for asked in asked_releases(os.environ.get(VARIABLE, "")):
        if asked in choices:
            return Followed(asked, f"as {VARIABLE} says")
    installed = f"{framework}-{version_there(framework)}"
    if installed.endswith("-"):
        return Followed(newest, f"the newest recorded, as {framework} is not installed")
    if not stands_for(frontend, installed):
        return Followed(newest, f"the newest recorded, as {installed} is installed")
    older = [name for name in choices if _numbers(name) <= _numbers(installed)]
    if not older:
        warnings.warn(
            f"{installed} is installed; the oldest release that {frontend} follows is {choices[0]}, as it does now",
            stacklevel=2,
        )
        return Followed(choices[0], f"the oldest recorded; {installed} is installed")
    same = _numbers(older[-1]) == _numbers(installed)
    return Followed(
        older[-1], "as installed" if same else f"the newest recorded before {installed}, which is installed"
    )


def asked_releases(text: str) -> list[str]:
    """Return the recorded releases that *text* names, such as ``torch-2.12,paddle-3.0.0``. Raises ArgumentError for others."""
    found = []
    for asked in filter(None, re.split(r"[,\s]+", text)):
        named = release_named(asked)
        if named is None:
            known = ", ".join(recorded_versions())
            raise ArgumentError(f"{VARIABLE} asks for {asked!r}, of which nothing is recorded; there are {known}")
        found.append(named)
    for frontend in FRONTENDS:
        of_one = [name for name in found if stands_for(frontend, name)]
        if len({*of_one}) > 1:
            raise ArgumentError(f"{VARIABLE} asks for several releases of one framework: {', '.join(of_one)}")
    return found


def release_named(text: str) -> str | None:
    """Return the recorded release that *text* names, of ``torch-2.12`` the last one with that number; None where there is none."""
    fitting = [name for name in recorded_versions() if name == text or name.startswith(f"{text}.")]
    return fitting[-1] if "-" in text and fitting else None


def releases_of(frontend: str) -> list[str]:
    """Return the recorded releases that *frontend* can follow, the oldest first."""
    return [name for name in recorded_versions() if stands_for(frontend, name)]


def version_there(framework: str) -> str:
    """Return the version of *framework* as loaded, or else as installed; "" where it is neither. It is quicker than ``version_of``."""
    loaded = getattr(sys.modules.get(framework), "__version__", None)
    if isinstance(loaded, str):
        return loaded.partition("+")[0]
    spec = importlib.util.find_spec(framework)
    if spec is None or spec.origin is None:
        return ""
    # What pip calls the folder beside it says the same as importlib.metadata, which takes 12 ms to be imported.
    for entry in os.listdir(Path(spec.origin).parents[1]):
        name, _, version = entry.removesuffix(".dist-info").partition("-")
        if entry.endswith(".dist-info") and name.replace("_", "-").lower() in PACKAGES[framework]:
            return version.partition("+")[0]
    return ""  # a folder that happens to have its name, or sources that nobody has installed


def version_of(framework: str) -> str:
    """Return the version of the installed *framework*, without what a build adds to it. Raises PackageNotFoundError where there is none."""
    import importlib.metadata

    for package in PACKAGES[framework]:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(package).partition("+")[0]
    raise importlib.metadata.PackageNotFoundError(framework)


def stands_for(frontend: str, release: str) -> bool:
    """Tell whether *frontend* stands for the *release*'s framework, and, of Paddle, for its major version."""
    framework, _, version = release.partition("-")
    return frontend in (f"shim.frontends.{framework}", f"shim.frontends.{framework}_{version.partition('.')[0]}")


def _numbers(release: str) -> tuple[int, ...]:
    """Return the first two numbers of a *release*'s version, as ``(2, 13)``."""
    return tuple(map(int, re.findall(r"\d+", release.partition("-")[2])[:2]))
