"""A group of processes that need not be ranks of the world, which can do nothing but wait for each other; the same in every version of paddle."""

from __future__ import annotations

from operator import index
from typing import Any
from urllib.parse import urlsplit

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError, StateError
from shim.frontends._paddle.errors import (
    ArgumentAssertionError,
    ArgumentTypeError,
    GroupMissingError,
    paddle_function,
)

_TIMEOUT = 3600.0  # seconds; what paddle gives the processes to meet
_INIT = paddle_function("gloo_init_parallel_env")
_BARRIER = paddle_function("gloo_barrier", errors={StateError: GroupMissingError})


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Meet the other processes that call this, as *rank_id* of *rank_num*, at *server_endpoint*, an "ip:port" of this host.

    Raises: AssertionError for a *rank_num* below 2; ValueError for what is no rank or endpoint.
    Deviates: the endpoint only names the rendezvous; no server listens at it.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gloo_init_parallel_env_en.html
    """
    return _open_at(_INIT, rank_id, rank_num, server_endpoint)


def gloo_barrier() -> None:
    """Wait until every process that ``gloo_init_parallel_env`` brought together has called this.

    Raises: AssertionError before ``gloo_init_parallel_env`` and after ``gloo_release``.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gloo_barrier_en.html
    """
    return _wait_for_all(_BARRIER)


def gloo_release() -> None:
    """Leave what ``gloo_init_parallel_env`` has made; nothing happens without.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gloo_release_en.html
    """
    return _leave()


class _Meeting:
    """Where this process waits for others; one for all threads, as in paddle."""

    group: groups.ProcessGroup | None = None


_meeting = _Meeting()


def _open_at(caller: Caller, rank: Any, size: Any, endpoint: Any) -> None:
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
    _leave()
    _meeting.group = groups.open_apart(caller, rank, size, init_method=url, name="gloo", timeout=_TIMEOUT)


def _url_of(caller: Caller, endpoint: Any) -> str:
    url = f"tcp://{endpoint}"
    try:
        if isinstance(endpoint, str) and urlsplit(url).hostname and urlsplit(url).port:
            return url
    except ValueError:  # a port that is none
        pass
    raise caller.explain(ArgumentError(f"server_endpoint must be a text like 127.0.0.1:6170, got {endpoint!r}"))


def _wait_for_all(caller: Caller) -> None:
    """Wait until every process of the meeting has called this."""
    if _meeting.group is None:
        error: ShimError = StateError("nobody to wait for\nCall gloo_init_parallel_env first.")
        raise caller.explain(error)
    calls.barrier(caller, _meeting.group).wait()


def _leave() -> None:
    """Leave the meeting, if there is one."""
    group, _meeting.group = _meeting.group, None
    if group is not None:
        groups.close_group(group)
