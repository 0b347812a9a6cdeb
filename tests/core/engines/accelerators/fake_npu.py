"""An accelerator that torch takes for real: its streams do nothing, its memory is the host's, and its backend "hccl" is gloo."""

from __future__ import annotations

import ctypes
import os
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
import torch
from dlpack_structures import DLTensor, ManagedTensor, capsule_of
from torch._C._distributed_c10d import PrefixStore
from torch.distributed import Backend, ProcessGroupGloo
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from shim.core.engines.network.threads import begin_thread

_EXTENSION = 12  # by DLPack's numbers


@cache
def plug_in() -> None:
    """Have torch know the accelerator npu, and its backend, as the package of its makers would."""
    _setup_privateuseone_for_python_backend("npu")
    Backend.register_backend("hccl", _hccl, extended_api=True, devices=["npu"])


def _hccl(options: Any, _its_own: Any) -> Any:
    assert len(options.global_ranks_in_group) == options.group_size
    return Hccl(options)


class Hccl:
    """Gloo, which meets the other ranks in its first operation, as HCCL does, and whose ``abort`` ends what is under way, as gloo's does not."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._gloo: Any = None  # made by the first operation, of which there is one at a time
        self.is_aborted = False
        self.handling = os.environ.get("TORCH_HCCL_ASYNC_ERROR_HANDLING")

    def _connected(self) -> Any:
        made: Any = ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        made._devices = [ProcessGroupGloo.create_device(hostname="127.0.0.1")]
        made._timeout = timedelta(days=1)
        options = self._options
        store = PrefixStore(options.group_id, options.store)
        return ProcessGroupGloo(store, options.group_rank, options.group_size, made)

    def size(self) -> int:
        size: int = self._options.group_size
        return size

    def abort(self) -> None:
        self.is_aborted = True

    def shutdown(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        self._gloo = self._gloo or self._connected()
        found = getattr(self._gloo, name)
        return lambda *call: _Work(self, found(*call))


class _Work:
    def __init__(self, backend: Hccl, work: Any) -> None:
        self._backend, self._work = backend, work
        self._error: RuntimeError | None = None

    def wait(self) -> None:
        waiting = begin_thread("test wait", self._run)
        while waiting.is_alive():
            waiting.join(0.02)
            if self._backend.is_aborted:
                raise RuntimeError("the backend was aborted")
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work.wait()
        except RuntimeError as error:
            self._error = error


class NpuTensor(torch.Tensor):
    """A tensor that says that it is on the accelerator."""

    number = 0
    kind: Any  # numpy's dtype

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("npu", self.number)

    @staticmethod
    def of(array: Any) -> NpuTensor:
        """Return a tensor with the elements of numpy's *array*, whatever its dtype."""
        held = np.ascontiguousarray(array)
        tensor = torch.empty(array.shape, dtype=getattr(torch, array.dtype.name)).as_subclass(NpuTensor)
        ctypes.memmove(tensor.data_ptr(), held.ctypes.data, held.nbytes)
        tensor.kind = array.dtype
        return tensor

    def at(self, number: int) -> NpuTensor:
        """Say that it is on device *number*."""
        self.number = number
        return self

    def values(self) -> Any:
        """Return numpy's array of the elements."""
        copied = np.empty(self.shape, self.kind)
        ctypes.memmove(copied.ctypes.data, self.data_ptr(), copied.nbytes)
        return copied


class ForeignTensor:
    """Four float64 on the accelerator, of another framework than torch."""

    def __init__(self) -> None:
        self._memory, self._shape = (ctypes.c_double * 4)(), (ctypes.c_int64 * 1)(4)
        told = DLTensor(ctypes.addressof(self._memory), _EXTENSION, 0, 1, 2, 64, 1, ctypes.addressof(self._shape))
        self._managed = ManagedTensor(1, 0, None, None, 0, told)

    def __dlpack__(self, **_: Any) -> Any:
        return capsule_of(self._managed, b"dltensor_versioned")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_EXTENSION, 0)
