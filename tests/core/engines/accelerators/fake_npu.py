"""An accelerator that torch takes for real: its streams do nothing, its memory is the host's, and its backend "hccl" is gloo."""

from __future__ import annotations

import ctypes
from datetime import timedelta
from functools import cache
from typing import Any

import torch
from dlpack_structures import DLTensor, ManagedTensor, capsule_of
from torch._C._distributed_c10d import PrefixStore
from torch.distributed import Backend, ProcessGroupGloo
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from shim.core.engines.network.threads import begin_thread

__all__ = ["ForeignTensor", "NpuTensor", "plug_in"]

_EXTENSION = 12  # by DLPack's numbers


@cache
def plug_in() -> None:
    """Have torch know the accelerator npu, and its backend, as the package of its makers would."""
    _setup_privateuseone_for_python_backend("npu")
    Backend.register_backend("hccl", _hccl, extended_api=True, devices=["npu"])


def _hccl(options: Any, _its_own: Any) -> Any:
    made: Any = ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    made._devices = [ProcessGroupGloo.create_device(hostname="127.0.0.1")]
    made._timeout = min(options.timeout, timedelta(days=1))
    store = PrefixStore(options.group_id, options.store)
    return _Backend(ProcessGroupGloo(store, options.group_rank, options.group_size, made))


class _Backend:
    """*gloo*, but that ``abort`` ends what is under way, which gloo's does not."""

    def __init__(self, gloo: Any) -> None:
        self._gloo = gloo
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._gloo, name)
        return found if name == "size" else lambda *call: _Work(self, found(*call))


class _Work:
    def __init__(self, backend: _Backend, work: Any) -> None:
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

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("npu", self.number)

    @staticmethod
    def of(array: Any) -> NpuTensor:
        """Return a tensor with the elements of numpy's *array*."""
        if array.dtype.name == "bfloat16":
            made = torch.from_numpy(array.view("int16").copy()).view(torch.bfloat16)
        else:
            made = torch.from_numpy(array.copy())
        return made.as_subclass(NpuTensor)

    def at(self, number: int) -> NpuTensor:
        """Say that it is on device *number*."""
        self.number = number
        return self

    def values(self) -> Any:
        """Return numpy's array of the elements."""
        plain = self.as_subclass(torch.Tensor)
        if plain.dtype == torch.bfloat16:
            import ml_dtypes

            return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return plain.numpy()


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
