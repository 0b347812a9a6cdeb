"""The works of a group of the engine's, for torch's own code: the frontend's Work, which is torch's Work as well."""

from __future__ import annotations

from typing import Any

import torch.distributed

from shim.frontends.torch._calls.work import Work

__all__ = ["EngineWork"]

_TorchWork: Any = torch.distributed.Work


class EngineWork(Work, _TorchWork):  # type: ignore[misc]  # torch's stubs give its methods other types
    """*work*, as an object of torch's own class too. torch's C++ code comes to ``wait`` and ``get_future``.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.Work
    """

    def __init__(self, work: Work) -> None:
        _TorchWork.__init__(self)
        Work.__init__(self, work._started, work._outputs, work._seconds)

    def boxed(self) -> Any:
        """Return what torch's graphs hold in place of a work."""
        return _TorchWork.boxed(self)
