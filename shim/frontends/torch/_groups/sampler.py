"""The class that derives from torch's own. Import this only where torch is loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller
from shim.errors import StateError
from shim.frontends.torch._errors import TorchStateError
from shim.frontends.torch._groups.membership import rank_in, size_of

__all__ = ["DistributedSampler"]

_ME = Caller("torch.utils.data.DistributedSampler", errors={StateError: TorchStateError})

_torch: Any = sys.modules["torch"]
if TYPE_CHECKING:

    class _Sampler:
        """What mypy, which does not see torch, is to know of it."""

        def __init__(self, *arguments: Any) -> None: ...

else:
    _Sampler = _torch.utils.data.DistributedSampler


class DistributedSampler(_Sampler):
    """Torch's own, for the part of *dataset* that is rank *rank*'s of *num_replicas* (None: what the world says).

    Raises: ValueError when not initialised, and for a *rank* that there is not.
    See: https://docs.pytorch.org/docs/2.15/data.html#torch.utils.data.distributed.DistributedSampler
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        count = size_of(_ME, None) if num_replicas is None else num_replicas
        place = rank_in(_ME, None) if rank is None else rank
        super().__init__(dataset, count, place, shuffle, seed, drop_last)
