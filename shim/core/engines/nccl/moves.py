"""How each collective is made of NCCL's calls, which are put on a stream and return at once.

What has parts of one size is one call; where they do not lie one after the other here, they are copied together, or apart. Parts of
different sizes are several calls in a group, which NCCL carries out as one. Which of the two it is depends on nothing but the sizes, on
which the ranks have agreed: NCCL would hang where one rank makes one call, and another one several. Data that is only moved counts as
bytes, so that its dtype does not matter. Sums run in NCCL's order, and not in that of the ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shim.core.engines.nccl.arithmetic import reduction_of

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.nccl.engine import NcclEngine

_Places = Sequence[tuple[int, int]]  # addresses, and bytes
_BYTE = 1  # NCCL's uint8


def broadcast(engine: NcclEngine, request: Request) -> None:
    ((at, size),) = request.input_places or request.output_places
    engine.launch("ncclBroadcast", at, at, size, _BYTE, request.root)


def all_reduce(engine: NcclEngine, request: Request) -> None:
    ((source, size),), ((target, _),) = request.input_places, request.output_places
    with reduction_of(engine, request) as (dtype, width, op):
        engine.launch("ncclAllReduce", source, target, size // width, dtype, op)


def reduce(engine: NcclEngine, request: Request) -> None:
    ((source, size),) = request.input_places
    target = request.output_places[0][0] if engine.rank == request.root else source  # which is not written
    with reduction_of(engine, request) as (dtype, width, op):
        engine.launch("ncclReduce", source, target, size // width, dtype, op, request.root)


def all_gather(engine: NcclEngine, request: Request) -> None:
    ((source, size),), targets = request.input_places, request.output_places
    if _have_one_size(targets):
        with _together(engine, targets) as whole:
            engine.launch("ncclAllGather", source, whole, size, _BYTE)
            if whole != targets[0][0]:
                for rank, (target, _) in enumerate(targets):
                    engine.copy(target, whole + rank * size, size)
        return
    with engine.group(has_messages=False):
        for rank, (target, part) in enumerate(targets):
            engine.launch("ncclBroadcast", source if rank == engine.rank else target, target, part, _BYTE, rank)


def gather(engine: NcclEngine, request: Request) -> None:
    ((source, size),) = request.input_places
    with engine.group(has_messages=True):
        if size:  # what is empty is not sent, as it is not received either
            engine.launch("ncclSend", source, size, _BYTE, request.root)
        if engine.rank == request.root:
            _receive_all(engine, request.output_places)


def scatter(engine: NcclEngine, request: Request) -> None:
    ((target, size),) = request.output_places
    with engine.group(has_messages=True):
        if size:
            engine.launch("ncclRecv", target, size, _BYTE, request.root)
        if engine.rank == request.root:
            _send_all(engine, request.input_places)


def reduce_scatter(engine: NcclEngine, request: Request) -> None:
    sources, ((target, size),) = request.input_places, request.output_places
    with reduction_of(engine, request) as (dtype, width, op):
        if _have_one_size(sources):
            with _together(engine, sources) as whole:
                if whole != sources[0][0]:
                    for rank, (source, _) in enumerate(sources):
                        engine.copy(whole + rank * size, source, size)
                engine.launch("ncclReduceScatter", whole, target, size // width, dtype, op)
            return
        with engine.group(has_messages=False):
            for rank, (source, part) in enumerate(sources):
                to = target if rank == engine.rank else source  # which is not written
                engine.launch("ncclReduce", source, to, part // width, dtype, op, rank)


def all_to_all(engine: NcclEngine, request: Request) -> None:
    with engine.group(has_messages=True):
        _send_all(engine, request.input_places)
        _receive_all(engine, request.output_places)


def _have_one_size(places: _Places) -> bool:
    return len({size for _, size in places}) == 1


@contextmanager
def _together(engine: NcclEngine, places: _Places) -> Iterator[int]:
    """Give the address of *places* of one size, or of room for all of them where they do not lie one after the other."""
    first, size = places[0]
    if size == 0 or all(at == first + rank * size for rank, (at, _) in enumerate(places)):
        yield first
        return
    with engine.room(size * len(places)) as room:
        yield room


def _send_all(engine: NcclEngine, places: _Places) -> None:
    for rank, (at, size) in enumerate(places):
        if size:
            engine.launch("ncclSend", at, size, _BYTE, rank)


def _receive_all(engine: NcclEngine, places: _Places) -> None:
    for rank, (at, size) in enumerate(places):
        if size:
            engine.launch("ncclRecv", at, size, _BYTE, rank)
