"""all_reduce of torch's sparse COO tensors: the ranks exchange their elements, and each adds them up in the order of ranks."""

from __future__ import annotations

import sys
import threading
from array import array
from typing import Any

from shim.core import calls, work
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import MismatchError, ShimError, UnsupportedError
from shim.frontends.torch._calls.arguments import check_dense, is_sparse
from shim.frontends.torch._calls.coalescing_blocks import open_blocks

_ANNOUNCED = "all_reduce of a sparse tensor"
# In which dtype elements are added up, where it is not their own: sums of short floats are rounded once.
_WIDER = {"float16": "float32", "bfloat16": "float32", "bool": "int64"}


def sum_of_sparse(caller: Caller, group: ProcessGroup, tensor: Any, op: ReduceOp, now: bool) -> work.Work | None:
    """Return the work of an all_reduce of the sparse COO *tensor* by *op*, or None where *tensor* is not sparse."""
    if not is_sparse(tensor):
        return None
    if op is not ReduceOp.SUM:
        calls.refuse(caller, group, UnsupportedError(f"{{op}} must be SUM for sparse tensors, got {op.name}"))
    if (threading.get_ident(), group) in open_blocks:
        check_dense(caller, group, tensor)
    prepared = _SparseSum(caller, group, tensor)
    if not now:
        return prepared
    prepared.wait()
    return work.ENDED


class _SparseSum(work.Work):
    """The all_reduce of a sparse tensor. To start it waits for all ranks, which compare their tensors and how many elements they have.

    The sum is written when somebody asks for the end: torch, too, gives the tensor new elements then, and leaves the old ones as they were.
    """

    __slots__ = ("_everywhere", "_exchange", "_is_written", "_tensor", "_writing")

    def __init__(self, caller: Caller, group: ProcessGroup, tensor: Any) -> None:
        self._caller = caller
        self._group: ProcessGroup = group
        self._tensor = tensor
        self._exchange: work.Batch | None = None
        self._is_written = False
        self._writing = threading.Lock()

    def start(self) -> work.Work | None:
        self._exchange_begun()
        return self

    def _exchange_begun(self) -> work.Batch:
        if self._exchange is not None:
            return self._exchange
        torch: Any = sys.modules["torch"]
        with torch.no_grad():
            mine = self._tensor.coalesce()
            indices, values = mine.indices().t().contiguous(), mine.values().contiguous()
        rows = self._rows_of_all(mine)
        all_indices = indices.new_empty((sum(rows), mine.sparse_dim()))
        all_values = values.new_empty((sum(rows), *values.shape[1:]))
        self._everywhere = (all_indices, all_values)
        pairs = ((all_indices, indices), (all_values, values))
        self._exchange = work.Batch([calls.all_gather(self._caller, self._group, *pair, rows) for pair in pairs])
        self._exchange.start()
        return self._exchange

    def _rows_of_all(self, mine: Any) -> list[int]:
        """Return how many elements each rank has, after comparing the tensors' shapes."""
        caller, group = self._caller, self._group
        calls.barrier(caller, group, True, _ANNOUNCED)
        header = array("q", [mine._nnz(), mine.sparse_dim(), *mine.shape])
        headers = array("q", bytes(8 * len(header) * group.size))
        calls.all_gather(caller, group, headers, header, now=True, whole=True)
        of_ranks = [headers[start : start + len(header)].tolist() for start in range(0, len(headers), len(header))]
        if any(one[1:] != of_ranks[0][1:] for one in of_ranks):
            told = ", ".join(f"{one[2:]} with {one[1]} sparse on rank {rank}" for rank, one in enumerate(of_ranks))
            raise caller.explain(MismatchError(f"the ranks' sparse tensors must have one shape, got {told}"), group)
        return [one[0] for one in of_ranks]

    def wait(self, timeout: float = -1.0) -> None:
        self._exchange_begun().wait(timeout)
        self._write()

    def _write(self) -> None:
        """Put the sum into the tensor, once."""
        torch: Any = sys.modules["torch"]
        with self._writing, torch.no_grad():
            if self._is_written:
                return
            indices, values = self._everywhere
            wider = _WIDER.get(str(values.dtype).removeprefix("torch."))
            added = values if wider is None else values.to(getattr(torch, wider))
            shape = self._tensor.shape
            total = torch.sparse_coo_tensor(indices.t(), added, shape, check_invariants=False).coalesce()
            self._tensor.copy_(total if wider is None else total.to(values.dtype))
            self._is_written = True

    def is_completed(self) -> bool:
        if self._exchange is None or not self._exchange.is_completed():
            return False
        if self._exchange.exception() is None:
            self._write()
        return True

    def exception(self) -> ShimError | None:
        return None if self._exchange is None else self._exchange.exception()

    def source_rank(self) -> int:
        return -1
