"""A group of processes apart from the world, which can do nothing but wait for each other."""

from __future__ import annotations

from operator import index
from typing import Any
from urllib.parse import urlsplit

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError, StateError
from shim.frontends._paddle.errors import ArgumentAssertionError, ArgumentTypeError

_TIMEOUT = 3600.0  # seconds; what paddle gives the processes to meet


class _Meeting:
    """Where this process waits for others; one for all threads, as in paddle."""

    group: groups.ProcessGroup | None = None


_meeting = _Meeting()


def open_at(caller: Caller, rank: Any, size: Any, endpoint: Any) -> None:
    """Leave the meeting there was, and wait at *endpoint* until *size* processes are there."""
    try:
        rank, size = index(rank), index(size)
    except TypeError:
        raise caller.explain(
            ArgumentTypeError(f"rank_id and rank_num must be integers, got {rank!r} and {size!r}")
        ) from None
    if size < 2:
        raise caller.explain(ArgumentAssertionError(f"rank_num must be at least 2, got {size}"))
    if not 0 <= rank < size:
        raise caller.explain(ArgumentError(f"rank_id must be in 0..{size - 1}, got {rank}"))
    url = _url_of(caller, endpoint)
    leave()
    _meeting.group = groups.open_apart(caller, rank, size, init_method=url, name="gloo", timeout=_TIMEOUT)


def _url_of(caller: Caller, endpoint: Any) -> str:
    url = f"tcp://{endpoint}"
    try:
        if isinstance(endpoint, str) and urlsplit(url).hostname and urlsplit(url).port:
            return url
    except ValueError:  # a port that is none
        pass
    raise caller.explain(ArgumentError(f"server_endpoint must be a text like 127.0.0.1:6170, got {endpoint!r}"))


def wait_for_all(caller: Caller) -> None:
    """Wait until every process of the meeting has called this."""
    if _meeting.group is None:
        error: ShimError = StateError("nobody to wait for\nCall gloo_init_parallel_env first.")
        raise caller.explain(error)
    calls.barrier(caller, _meeting.group).wait()


def leave() -> None:
    """Leave the meeting, if there is one."""
    group, _meeting.group = _meeting.group, None
    if group is not None:
        groups.close_group(group)
