"""The barrier of processes that need not be ranks of the world, the same in every version of paddle."""

from __future__ import annotations

from shim.errors import StateError
from shim.frontends._paddle.errors import GroupMissingError, paddle_function
from shim.frontends._paddle.world import meeting

_INIT = paddle_function("gloo_init_parallel_env")
_BARRIER = paddle_function("gloo_barrier", errors={StateError: GroupMissingError})


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Meet the other processes that call this, as *rank_id* of *rank_num*, at *server_endpoint*, an "ip:port" of this host.

    Raises: AssertionError for a *rank_num* below 2; ValueError for what is no rank or endpoint.
    Deviates: the endpoint only names the rendezvous; no server listens at it.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gloo_init_parallel_env_en.html
    """
    return meeting.open_at(_INIT, rank_id, rank_num, server_endpoint)


def gloo_barrier() -> None:
    """Wait until every process that ``gloo_init_parallel_env`` brought together has called this.

    Raises: AssertionError before ``gloo_init_parallel_env`` and after ``gloo_release``.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gloo_barrier_en.html
    """
    return meeting.wait_for_all(_BARRIER)


def gloo_release() -> None:
    """Leave what ``gloo_init_parallel_env`` has made; nothing happens without.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gloo_release_en.html
    """
    return meeting.leave()
