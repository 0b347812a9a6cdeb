"""The way into a job's control connections, and out of them when the program ends."""

from __future__ import annotations

import atexit
import weakref

from shim.core.control.control import Control
from shim.core.control.hosting import host
from shim.core.control.joining import join
from shim.core.control.meeting import Meeting, Patience
from shim.errors import ArgumentError

_WARN_AFTER = 10.0  # seconds
_open_controls: weakref.WeakSet[Control] = weakref.WeakSet()


def meet(job: Meeting, timeout: float, warn_after: float = _WARN_AFTER) -> Control:
    """Wait up to *timeout* seconds until all ranks of *job* are there, and return this rank's control connections.

    After *warn_after* seconds, if that is not 0, one warning on standard error tells what is waited for.
    Raises StateError where the ranks' places, secrets, sizes or versions do not fit together, CollectiveTimeoutError where some
    do not come or rank 0 cannot be found, and PeerLostError where rank 0 is gone before all are there.
    """
    if not 0 <= job.rank < job.size:
        raise ArgumentError(f"the rank must be in 0..{job.size - 1}, got {job.rank}")
    patience = Patience(job, timeout, warn_after)
    control = host(job, patience) if job.rank == 0 else join(job, patience)
    _open_controls.add(control)
    return control


def _close_all() -> None:
    """Say good-bye when the program ends without having closed its connections, and let the hub send what it has."""
    for control in list(_open_controls):
        control.close("its program ended")
        control.flush()


atexit.register(_close_all)
