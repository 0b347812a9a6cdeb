"""``paddle.io.DistributedBatchSampler``, the same in every version of paddle. Import this only where paddle is loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller
from shim.frontends._paddle.world.options import rank_in, size_of

__all__ = ["DistributedBatchSampler"]

_ME = Caller("paddle.io.DistributedBatchSampler")

_paddle: Any = sys.modules["paddle"]
if TYPE_CHECKING:

    class _Sampler:
        """What mypy, which does not see paddle, is to know of it."""

        def __init__(self, *arguments: Any) -> None: ...

else:
    _Sampler = _paddle.io.DistributedBatchSampler


class DistributedBatchSampler(_Sampler):
    """Paddle's own, for the part of *dataset* that is rank *rank*'s of *num_replicas* (None: what the world says), in batches of *batch_size*.

    Paddle asks the variables of its own launcher alone, and would give all of the data to every rank that another one has started.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/io/DistributedBatchSampler_en.html
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        count = size_of(_ME, None) if num_replicas is None else num_replicas
        place = rank_in(_ME, None) if rank is None else rank
        super().__init__(dataset, batch_size, count, place, shuffle, drop_last)
