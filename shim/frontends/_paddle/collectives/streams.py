"""What ``use_calc_stream`` asks for: a rule about ``sync_op``.

Host tensors have no stream. A synchronous call with tensors on a device goes on the current stream, which is Paddle's calculation
stream, whether *use_calc_stream* says so or not; one that is started goes beside it.
"""

from __future__ import annotations

from typing import Any

from shim.core.callers import Caller
from shim.frontends._paddle.arguments import is_now, refuse
from shim.frontends._paddle.errors import ArgumentRuntimeError, paddle_function
from shim.frontends._paddle.groups.group_views import group_of


def stream_function(name: str, **roles: Any) -> Caller:
    """Return the Caller of ``paddle.distributed.stream.name``; see ``paddle_function``."""
    return paddle_function(f"stream.{name}", **roles)


def checked_sync(caller: Caller, group: Any, sync_op: Any, use_calc_stream: Any) -> bool:
    """Return *sync_op* of a collective, without which *use_calc_stream* must not be asked for.

    Host tensors have no streams: what is computed before the call has ended, and a synchronous call ends before what follows.
    """
    is_sync = is_now(caller, group, sync_op)
    if use_calc_stream and not is_sync and group_of(caller, group).rank >= 0:
        refuse(caller, group, _not_without_sync(use_calc_stream))
    return is_sync


def checked_point_sync(caller: Caller, group: Any, sync_op: Any, use_calc_stream: Any) -> bool:
    """Return *sync_op* of a send or a receive, which concerns no other rank until it begins."""
    if use_calc_stream and not sync_op and group_of(caller, group).rank >= 0:
        raise caller.explain(_not_without_sync(use_calc_stream), group_of(caller, group))
    return bool(sync_op)


def _not_without_sync(use_calc_stream: Any) -> ArgumentRuntimeError:
    return ArgumentRuntimeError(
        f"use_calc_stream must be False when sync_op is False, got use_calc_stream={use_calc_stream!r}"
    )
