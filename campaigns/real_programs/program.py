"""A program of the table: what it uses, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Program:
    """A script in ``programs/``, which two ranks run."""

    script: str  # its path there, without ".py"
    uses: str  # the feature, for the table
    packages: tuple[str, ...] = ()  # as pip takes them; none: torch alone
    alone: tuple[
        str, ...
    ] = ()  # what is installed without its dependencies, of which some would replace those of others
    library: str = "torch"  # the package whose version the table shows
    seconds: float = 180.0  # after which it is ended

    @property
    def name(self) -> str:
        """The name under which it is asked for and recorded."""
        return self.script.rpartition("/")[2]

    @property
    def path(self) -> Path:
        """The script's file."""
        return PROGRAMS / f"{self.script}.py"


@dataclass(frozen=True)
class LeftOut:
    """A library or a feature that does not run here, on gloo neither."""

    library: str
    uses: str
    reason: str
