"""What the environment tells a process about the job it is part of."""

from __future__ import annotations

import os

from shim.core.job.launchers.paddle import paddle_endpoints
from shim.core.job.variables import Variables
from shim.errors import ArgumentError
from shim.frontends._paddle.errors import ArgumentAssertionError, paddle_function
from shim.frontends._paddle.world.options import rank_in, size_of

_PARALLEL_ENV = paddle_function("ParallelEnv")
_SELECTED = ("FLAGS_selected_gpus", "FLAGS_selected_xpus")
_MOST_RINGS = 8


class ParallelEnv:
    """This process's rank, the world size and the launcher's other settings, read when the object is made.

    Deviates: reads rank and world size from every launcher's environment, not only paddle's.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/ParallelEnv_en.html
    """

    def __init__(self) -> None:
        variables = Variables(os.environ)
        self._rank = rank_in(_PARALLEL_ENV, None)
        self._world_size = size_of(_PARALLEL_ENV, None)
        selected = variables.first(_SELECTED)
        self._device_id = 0 if selected is None else _number(selected, variables.text(selected).partition(",")[0])
        self._trainer_endpoints = (paddle_endpoints(variables) or "").split(",")
        self._current_endpoint = variables.get("PADDLE_CURRENT_ENDPOINT") or ""
        self._rings = _number("FLAGS_nccl_nrings", variables.get("FLAGS_nccl_nrings") or "1")
        if not 1 <= self._rings <= _MOST_RINGS:
            raise _PARALLEL_ENV.explain(
                ArgumentAssertionError(f"FLAGS_nccl_nrings must be in 1..{_MOST_RINGS}, got {self._rings}")
            )
        self._pg_timeout = _number("PADDLE_PG_TIMEOUT", variables.get("PADDLE_PG_TIMEOUT") or "1800000")

    @property
    def rank(self) -> int:
        """The rank in the world."""
        return self._rank

    @property
    def world_size(self) -> int:
        """The number of ranks in the world."""
        return self._world_size

    @property
    def device_id(self) -> int:
        """The first device in FLAGS_selected_gpus or FLAGS_selected_xpus, 0 without them."""
        return self._device_id

    @property
    def device_type(self) -> str:
        """The custom device that paddle was built for: none here."""
        return ""

    @property
    def current_endpoint(self) -> str:
        """This rank's address, where paddle's launcher gave it one, else empty."""
        return self._current_endpoint

    @property
    def trainer_endpoints(self) -> list[str]:
        """All ranks' addresses, where paddle's launcher gave them some; else one empty address, as in paddle."""
        return self._trainer_endpoints

    @property
    def nrings(self) -> int:
        """What FLAGS_nccl_nrings says, 1 without it."""
        return self._rings

    @property
    def pg_timeout(self) -> int:
        """The timeout of process groups in milliseconds, of PADDLE_PG_TIMEOUT."""
        return self._pg_timeout

    local_rank = rank
    nranks = world_size
    dev_id = device_id


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _PARALLEL_ENV.explain(ArgumentError(f"{name} must be a number, got {text}")) from None
