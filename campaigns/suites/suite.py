"""A suite: where its tests come from, which of them run, and how they are changed to run on CPUs."""

from __future__ import annotations

from dataclasses import dataclass

GLOO, ENGINE, FRONTEND = "gloo", "engine", "frontend"  # the ways to run tests


@dataclass(frozen=True)
class Selection:
    """Test files, or single tests of them, of which each runs in a pytest of its own."""

    names: tuple[str, ...]  # relative to ``folder``, as pytest takes them
    folder: str = "."  # the working directory, in the suite's sources
    options: tuple[str, ...] = ()  # for pytest
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Suite:
    """The tests of one project. Its sources are a source distribution of ``library``, or ``revision`` of ``repository``."""

    name: str
    library: str  # the package whose version the table shows
    version: str
    tests: tuple[Selection, ...]
    packages: tuple[str, ...]  # as pip takes them
    repository: str = ""  # OWNER/NAME on GitHub; empty: the source distribution
    revision: str = ""
    paths: tuple[str, ...] = ("tests",)  # of the sources, those that the tests need
    replaced: tuple[tuple[str, str], ...] = ()  # patterns in these files, and what takes their place
    frontend: tuple[
        tuple[str, str], ...
    ] = ()  # further ones that put a frontend in the place of the framework's functions
    ways: tuple[str, ...] = (GLOO, ENGINE)
    adapted: str = "as they are"  # what ``replaced`` does, for the page
    alone: tuple[str, ...] = ()  # packages that are installed without their dependencies
    seconds: float = 600.0  # after which the pytest of a file is ended


@dataclass(frozen=True)
class LeftOut:
    """Tests that do not run here, and why."""

    suite: str
    tests: str
    reason: str


@dataclass(frozen=True)
class Difference:
    """Why a test passes on gloo and not here. ``test`` is a pattern of its name, ``release`` of torch's."""

    suite: str
    test: str
    reason: str
    release: str = "*"
