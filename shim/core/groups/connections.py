"""The control connections of a world whose engine needs them, and what they tell of its ranks' hosts."""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shim.core.engines.choosing import place_by_library
from shim.core.job.variables import Variables, checked_seconds
from shim.errors import ArgumentError, MismatchError, StateError

if TYPE_CHECKING:
    from shim.core.control import Control
    from shim.core.engines.place import Choice
    from shim.core.job.job import Job

_EMULATED, _GAP = "SHIM_EMULATED_HOSTS", "SHIM_NETWORK_GAP"


def connection_for(job: Job, choice: Choice, timeout: float, is_world: bool = True) -> Control | None:
    """Return the control connections of *job*, all of whose ranks ask for them; None where the engine *choice* needs none.
    Those of one host may meet by MPI only as the world (*is_world*), whose ranks are MPI's.

    Raises StateError where the ranks are on several hosts and nobody told where they meet, MismatchError where they choose
    different engines, and what ``meet`` raises.
    """
    if not choice.is_over_network:
        return None
    from shim.core.control import USUAL_GAP, Meeting, meet  # most jobs are on one host

    address, secret = job.meeting_address, job.secret
    if choice.library == "mpi" and not address and (is_world or job.several_hosts):
        address, secret = place_by_library(job, timeout)
    elif job.several_hosts and not address:
        raise StateError(
            f"the ranks are on several hosts ({job.several_hosts}), and nothing tells where they meet\n"
            "Set MASTER_ADDR to rank 0's host and MASTER_PORT to a free port there, the same on every rank."
        )
    facts = _facts(choice, job).encode()
    meeting = Meeting(job.rank, job.size, job.key, address, secret, facts, job.interface, _network_gap() or USUAL_GAP)
    control = meet(meeting, timeout)
    if secret:
        control.seal_key = hmac.digest(secret, f"objects of {job.key}".encode(), "sha256")
    try:
        _check_choices(control)
    except MismatchError:
        control.close("the ranks chose different engines")
        raise
    return control


def hosts_of(control: Control | None, size: int) -> tuple[int, ...]:
    """Return by rank the number of its host, all 0 where the ranks of a world of *size* are on one."""
    if control is None:
        return (0,) * size
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(_said(peer.facts)[1] or peer.host_id, len(numbers)) for peer in control.peers)


def _facts(choice: Choice, job: Job) -> str:
    """Return what a rank tells the others: its choice of engine, and its host, where that is emulated."""
    return f"{choice}\n{_emulated(job)}"


def _said(facts: bytes) -> Sequence[str]:
    return facts.decode().split("\n")


def _emulated(job: Job) -> str:
    """Return the host that this rank is to count as being on, where the user has one host's ranks play several."""
    count = Variables(os.environ).get(_EMULATED)
    if count is None:
        return ""
    if not (count.isascii() and count.isdigit() and int(count) > 0):
        raise ArgumentError(f"{_EMULATED} must be a number from 1 on, got {count!r}")
    return f"emulated host {job.rank * min(int(count), job.size) // job.size}"


def _network_gap() -> float:
    """Return for how many seconds a host may not answer before its ranks are lost; 0 where the user did not say."""
    text = Variables(os.environ).get(_GAP)
    if text is None:
        return 0
    seconds = checked_seconds(_GAP, text, "a number of seconds from 1 on")
    if seconds < 1:
        raise ArgumentError(f"{_GAP} must be a number of seconds from 1 on, got {text!r}")
    return seconds


def _check_choices(control: Control) -> None:
    choices = [_said(peer.facts)[0] for peer in control.peers]
    if len(set(choices)) == 1:
        return
    lines = "".join(
        f"\n  rank {rank}: {choice}{'  <- this rank' * (rank == control.rank)}" for rank, choice in enumerate(choices)
    )
    raise MismatchError(
        f"the ranks disagree on the engine{lines}\nSet SHIM_ENGINE and SHIM_ACROSS to the same values on all ranks."
    )
