"""MPI through mpi4py's calls on buffers, whichever MPI the process was started by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from shim.bench.libraries.base import Call, CannotError, CollectiveLibrary, Place, Tensors
from shim.bench.libraries.patterns import ARRAY_DTYPES, Array


class Mpi(CollectiveLibrary):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import mpi4py
        from mpi4py import MPI

        self.mpi: Any = MPI
        self.world: Any = MPI.COMM_WORLD
        self._version = mpi4py.__version__
        self._types = {"float32": MPI.FLOAT, "int64": MPI.INT64_T, "bfloat16": MPI.BFLOAT16_T}
        self._dtype = "float32"

    def versions(self) -> dict[str, str]:
        told = self.mpi.Get_library_version().strip("\0").splitlines()[0]
        return {"mpi4py": self._version, "MPI": " ".join(told.partition(", package")[0].split())}

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        self._dtype = dtype
        array: Array = np.empty(count, ARRAY_DTYPES[dtype])
        return array, array

    def all_reduce(self, tensors: Tensors) -> Call:
        return partial(self.world.Allreduce, self.mpi.IN_PLACE, self._reduced(tensors.output))

    def all_gather(self, tensors: Tensors) -> Call:
        return partial(self.world.Allgather, tensors.input, tensors.output)

    def reduce_scatter(self, tensors: Tensors) -> Call:
        return partial(self.world.Reduce_scatter_block, self._reduced(tensors.input), self._reduced(tensors.output))

    def all_to_all(self, tensors: Tensors) -> Call:
        return partial(self.world.Alltoall, tensors.input, tensors.output)

    def broadcast(self, tensors: Tensors) -> Call:
        return partial(self.world.Bcast, tensors.output, 0)

    def barrier(self, tensors: Tensors) -> Call:
        return partial(self.world.Barrier)

    def send(self, tensor: Any, peer: int) -> Call:
        return partial(self.world.Send, tensor, peer)

    def receive(self, tensor: Any, peer: int) -> Call:
        return partial(self.world.Recv, tensor, peer)

    def all_gather_unequal(self, tensors: Tensors) -> Call:
        return partial(self.world.Allgatherv, tensors.input, [tensors.output, tensors.parts])

    def start_all_reduce(self, tensor: Any) -> Callable[[], Call]:
        return lambda: self.world.Iallreduce(self.mpi.IN_PLACE, tensor).Wait

    def _reduced(self, array: Array) -> Any:
        """Name the type of what is to be added; moving is done with what numpy has."""
        kind = self._types[self._dtype]
        if kind == self.mpi.DATATYPE_NULL:
            raise CannotError("this MPI has no bfloat16 to add")
        return [array, kind]

    def close(self) -> None:
        self.mpi.Finalize()
