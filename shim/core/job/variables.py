"""The environment variables of launchers and of users, and how they are named in messages."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache

from shim.errors import ArgumentError, StateError

_NAMES = """
ACROSS ALLOW_PICKLE API CROSS_MEMORY EMULATED_HOSTS ENDPOINTS ENGINE INTERFACE JOB JOB_NAME MEASURED NETWORK_GAP RANK REHEARSE SECRET
SHARED_ALLOCATIONS STAGE STALL_WARNING TORCH_BACKEND TRACE TRACE_DIGESTS TRACE_VALUES WORLD_SIZE
"""
KNOWN = frozenset(f"SHIM_{name}" for name in _NAMES.split())  # those of docs/variables.md
REHEARSED = "SHIM_REHEARSE"  # of how many ranks this process plays one in a rehearsal
_OF_TESTS = ("FAULT", "GATE", "TEST_")  # how the names begin that the project's tests set


class Variables:
    """A process's environment, read for who the process is. A variable that is empty counts as one that is not set."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def get(self, name: str) -> str | None:
        """Return the value of *name*, or None."""
        return self._environment.get(name) or None

    def first(self, names: tuple[str, ...]) -> str | None:
        """Return which of *names* is the first that is set."""
        return next((name for name in names if self.get(name)), None)

    def text(self, name: str, others: tuple[str, ...] = ()) -> str:
        """Return the value of *name*. Raises StateError, naming *others* of its set that are there, where it is not set."""
        value = self.get(name)
        if value is None:
            there = tuple(other for other in others if self.get(other))
            if there:
                raise StateError(
                    f"{name} is not set, while {self.shown(there)}\nSet {name} too, or unset {' and '.join(there)}."
                )
            raise StateError(f"{name} is not set\nSet {name}.")
        return value

    def number(self, name: str, others: tuple[str, ...] = ()) -> int:
        """Return the value of *name* as a number that is not negative. Raises ArgumentError for other values."""
        text = self.text(name, others)
        if not (text.isascii() and text.strip().isdigit()):
            raise ArgumentError(f"{name} must be a number that is not negative, got {name}={text}")
        return int(text)

    def repeat(self, pairs: Iterable[tuple[str, str]]) -> bool:
        """Tell whether the two names of each of *pairs* have one value."""
        return all(self.get(name) and self.get(name) == self.get(other) for name, other in pairs)

    def shown(self, names: tuple[str, ...]) -> str:
        """Return *names* with their values, as a message shows them."""
        return ", ".join(f"{name}={self.get(name)}" if self.get(name) else f"{name} is not set" for name in names)


@cache
def tell_of_unknown() -> None:
    """Say on stderr, once in this process, which variables begin with SHIM_ and are not read, with the name that was probably meant."""
    for name in sorted(os.environ):
        ours = name in KNOWN or name[len("SHIM_") :].startswith(_OF_TESTS)
        if name.startswith("SHIM_") and not ours and os.environ[name] and sys.stderr is not None:
            from difflib import get_close_matches  # here, as most processes do not need it

            near = get_close_matches(name, KNOWN, 1, 0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            sys.stderr.write(f"shim: the environment variable {name} has no effect{hint}\n")


def chosen_stall_warning(variables: Variables) -> float:
    """Return after how many seconds a wait for missing ranks is told of, as ``SHIM_STALL_WARNING`` says; 0 means never.

    Raises ArgumentError for what is no time.
    """
    text = variables.get("SHIM_STALL_WARNING") or "10"
    return checked_seconds("SHIM_STALL_WARNING", text, "a number of seconds, 0 for no warning")


def checked_bytes(name: str, text: str, words: str) -> int:
    """Return the number of bytes that *text*, which *name* gave, stands for; *words* are what else it may be."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and int(text) > 0):
        raise ArgumentError(f"{name} must be {words}, or a number of bytes from 1 on, got {text!r}")
    return int(text)


def checked_seconds(name: str, text: str, words: str) -> float:
    """Return the time that *text*, which *name* gave, stands for; *words* are what it must be."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ArgumentError(f"{name} must be {words}, got {text!r}")
    return seconds


def checked_port(name: str, text: str) -> int:
    """Return the port number that *text*, which *name* gave, stands for."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ArgumentError(f"{name} must give a port, 1 to 65535, got {text}")
    return int(text)


def rehearsed_size(variables: Variables) -> int:
    """Return how many ranks are rehearsed; 0 where this is no rehearsal. Raises ArgumentError for what is no number of them."""
    text = variables.get(REHEARSED)
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentError(f"{REHEARSED} must be a number of ranks from 1 on, got {text!r}")
    return int(text)
