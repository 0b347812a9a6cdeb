"""``paddle.distributed.fleet`` of paddle 3, for data parallelism alone."""

from __future__ import annotations

from typing import Any

from shim.frontends import _absent
from shim.frontends._paddle.collectives.gather_and_wait import barrier
from shim.frontends._paddle.training.fleet import Fleet, fleet
from shim.frontends._paddle.world.lifecycle import get_rank, get_world_size

__all__ = [
    "barrier_worker",
    "distributed_model",
    "distributed_optimizer",
    "fleet",
    "init",
    "is_first_worker",
    "is_server",
    "is_worker",
    "worker_index",
    "worker_num",
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


def worker_num() -> int:
    """Return the number of ranks.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return get_world_size()


def worker_index() -> int:
    """Return this process's rank.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return get_rank()


def is_first_worker() -> bool:
    """Tell whether this process is rank 0.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return get_rank() == 0


def is_worker() -> bool:
    """Tell whether this process is a rank, which every process is where there are no parameter servers.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return True


def is_server() -> bool:
    """Tell whether this process is a parameter server, which none is.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    return False


def barrier_worker() -> None:
    """Wait for all ranks.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """
    barrier()


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here, with the reason where paddle has it."""
    _absent.refuse_name(__name__, name)
