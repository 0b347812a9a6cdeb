"""torch's Work around a work of the frontend's: what torch's own code waits for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as torch_distributed

from shim.frontends.torch._calls.work import Work

__all__ = ["EngineWork"]

_NO_TIMEOUT = timedelta(0)


_TorchWork: Any = torch_distributed.Work


class EngineWork(_TorchWork):  # type: ignore[misc]  # torch's stubs give its methods other types
    """*work*, as an object of torch's own class; torch's C++ code comes to ``wait`` and ``get_future``.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.Work
    """

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Wait until it has ended, at most *timeout* (zero: the group's own), and return True. Raises what ended it."""
        return self._work.wait(timeout)

    def get_future(self) -> Any:
        """Return a ``torch.futures.Future`` of the tensors it writes; an error in it is a RuntimeError with the text of ours."""
        ended: Any = torch.futures.Future()
        self._work.when_ended(lambda: ended.set_result(None))
        return ended.then(
            lambda _: self._outputs()
        )  # what this raises is an error to torch's C++ code too, unlike set_exception's

    def _outputs(self) -> list[Any]:
        self._work.wait()
        return self._work.result()

    def get_future_result(self) -> Any:
        """Return a ``torch.futures.Future`` of torch's WorkResult: 0 after success, 1 a timeout, 2 another error."""
        return self._work.get_future_result()

    def synchronize(self) -> None:
        """Wait until it has ended: host tensors have no stream to order it in."""
        self._work.wait()

    block_current_stream = synchronize

    def is_completed(self) -> bool:
        """Tell whether it has ended, well or badly."""
        return self._work.is_completed()

    def is_success(self) -> bool:
        """Tell whether it has ended well."""
        return self._work.is_success()

    def exception(self) -> Any:
        """Return the error that ended it, or None."""
        return self._work.exception()

    def result(self) -> list[Any]:
        """Return the tensors it writes."""
        return self._work.result()

    def source_rank(self) -> int:
        """Return the group rank a completed receive came from."""
        return self._work.source_rank()

    _source_rank = source_rank
