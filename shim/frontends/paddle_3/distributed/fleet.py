"""``paddle.distributed.fleet`` of paddle 3, for data parallelism alone.

As in paddle, most functions are methods of its one object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent
from shim.frontends._paddle.graphs import run_as_written
from shim.frontends._paddle.training.fleet import Fleet, UtilBase, fleet, util

__all__ = [
    "Fleet",
    "UtilBase",
    "barrier_worker",
    "distributed_model",
    "distributed_optimizer",
    "fleet",
    "init",
    "is_coordinator",
    "is_first_worker",
    "is_server",
    "is_worker",
    "local_device_ids",
    "local_rank",
    "node_num",
    "nranks",
    "rank",
    "rank_in_node",
    "server_endpoints",
    "server_index",
    "server_num",
    "util",
    "worker_endpoints",
    "worker_index",
    "worker_num",
    "world_device_ids",
    "world_size",
]


def init(
    role_maker: Any = None, is_collective: bool = False, strategy: Any = None, log_level: int | str = "INFO"
) -> Fleet:
    """Make this process a rank of the world with *strategy*, a DistributedStrategy of paddle's, and set paddle's *log_level*.

    Raises: ValueError for an *is_collective* that is no bool, and for another dp_degree than the world's size.
    Deviates: a *role_maker*, parameter servers (*is_collective* False), static mode and what *strategy* asks for beyond
    data parallelism raise UnsupportedError.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return fleet.init(role_maker, is_collective, strategy, log_level)


def distributed_model(model: Any) -> Any:
    """Return *model* in a ``DataParallel``, with the buffers that the strategy says.

    Raises: AssertionError before ``init``; what ``DataParallel`` does.
    Deviates: it works in a world of one, with a warning; a PipelineLayer raises UnsupportedError.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return fleet.distributed_model(model)


def distributed_optimizer(*args: Any, **kwargs: Any) -> Any:
    """Return the optimizer that is first of *args* and *kwargs*; a strategy may come second, in place of ``init``'s.

    Raises: AssertionError before ``init``.
    Deviates: it is the optimizer itself, which paddle wraps.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return fleet.distributed_optimizer(*args, **kwargs)


worker_num = nranks = world_size = fleet.worker_num
worker_index = rank = fleet.worker_index
node_num = fleet.node_num
local_rank = rank_in_node = fleet.local_rank
local_device_ids = fleet.local_device_ids
world_device_ids = fleet.world_device_ids
is_first_worker = fleet.is_first_worker
is_worker = fleet.is_worker
is_coordinator = fleet.is_coordinator
is_server = fleet.is_server
worker_endpoints = fleet.worker_endpoints
server_num = fleet.server_num
server_index = fleet.server_index
server_endpoints = fleet.server_endpoints
barrier_worker = fleet.barrier_worker

run_as_written(globals())

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where paddle has it."""
        _absent.refuse_name(__name__, name)
