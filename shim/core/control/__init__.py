"""The control connections of a job: who is there, who has gone, and small messages between the ranks.

Rank 0's process runs a hub, to which each other rank has one connection, over TCP or, on one host, an abstract unix socket.
For N ranks a meeting is 5 N messages: greeting, join, reply, what a rank says of itself, and the roster of all, which is N x N
descriptions in total. An exchange among k ranks is k frames to the hub and k from it, each of those with k payloads.
"""

from __future__ import annotations

from shim.core.control.control import Control
from shim.core.control.entry import meet
from shim.core.control.meeting import USUAL_GAP, Meeting
from shim.core.control.peers import Peer

__all__ = ["USUAL_GAP", "Control", "Meeting", "Peer", "meet"]
