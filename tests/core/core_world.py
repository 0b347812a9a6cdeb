"""The world of one test of the core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup

TEST = Caller("test")


@contextmanager
def world(caller: Caller = TEST, **options: Any) -> Iterator[ProcessGroup]:
    """Enter the world as *caller*, with the *options* of ``enter_world``, and leave it again, whatever happens."""
    try:
        yield groups.enter_world(caller, "test", **options)
    finally:
        groups.close_world()
