"""The control connections of a job: who is there, who has gone, and small messages between the ranks.

Rank 0's process runs a hub, to which each other rank has one connection, over TCP or, on one host, an abstract unix socket.
For N ranks a meeting is 5 N messages: greeting, join, reply, what a rank says of itself, and the roster of all, which is N x N
descriptions in total. An exchange among k ranks is k frames to the hub and k from it, each of those with k payloads.
"""

from __future__ import annotations

import atexit
import weakref

from shim.core.control.control import Control
from shim.core.control.meeting import USUAL_GAP, Meeting, Patience
from shim.core.control.other_ranks import meet_as_other_rank
from shim.core.control.peers import Peer
from shim.core.control.rank_zero import meet_as_rank_zero
from shim.errors import ArgumentError

__all__ = ["USUAL_GAP", "Control", "Meeting", "Peer", "meet"]

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
    control = meet_as_rank_zero(job, patience) if job.rank == 0 else meet_as_other_rank(job, patience)
    control.job = job
    _open_controls.add(control)
    return control


def _close_all() -> None:
    """Say good-bye when the program ends without having closed its connections, and let the hub send what it has."""
    for control in list(_open_controls):
        control.close("its program ended")
        control.flush()


atexit.register(_close_all)
