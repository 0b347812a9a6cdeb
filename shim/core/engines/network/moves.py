"""How the collectives move their data over a link, once all ranks have agreed on the call.

Every two ranks exchange what they have for each other. Reductions combine the elements of all ranks in the order of
ranks 0 to N-1, each rank a slice of them: the result is bit by bit that of one host's engine. Only all_reduce of more than
16 ranks leaves the order to the library, where that combines the dtype right.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack, unpack
from typing import TYPE_CHECKING

import numpy as np

from shim._native import dtype_bytes
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim._native import Request
    from shim.core.engines.network.engine import NetworkEngine

HANDED_ON = (1 << 20) + 1  # number of a message that a collective is made of, above those of messages
_NOTHING = memoryview(bytearray())
_MOST_BY_SLICES = 16  # ranks; of more, the library's own all_reduce takes fewer messages


def broadcast(engine: NetworkEngine, request: Request) -> None:
    """The library's own."""
    data = request.inputs[0] if engine.rank == request.root else request.outputs[0]
    engine.wait_for(engine.link.broadcast(data, request.root))


def all_reduce(engine: NetworkEngine, request: Request) -> None:
    """Each rank combines its slice and gives it to all: 2*(N-1)/N*S bytes and 2*(N-1) messages on each rank."""
    mine, result = request.inputs[0], request.outputs[0]
    if engine.size > _MOST_BY_SLICES and engine.link.reduces(request.dtype, ReduceOp(request.op)):
        result[:] = mine
        engine.wait_for(engine.link.all_reduce(result, request.dtype, ReduceOp(request.op)))
        return
    own = slices(result, engine.size, request.dtype)[engine.rank]
    _combine_slices(engine, request, slices(mine, engine.size, request.dtype), own)
    _exchange(engine, slices(result, engine.size, request.dtype), [own] * engine.size)


def reduce(engine: NetworkEngine, request: Request) -> None:
    """Each rank combines its slice and gives it to the root: at most 2*(N-1)/N*S bytes on each rank."""
    mine = slices(request.inputs[0], engine.size, request.dtype)
    is_root = engine.rank == request.root
    results = slices(request.outputs[0], engine.size, request.dtype) if is_root else [_NOTHING] * engine.size
    own = results[engine.rank] if is_root else room(len(mine[engine.rank]))
    _combine_slices(engine, request, mine, own)
    _exchange(engine, results, [own if rank == request.root else _NOTHING for rank in range(engine.size)])


def all_gather(engine: NetworkEngine, request: Request) -> None:
    """Every rank sends its input to every other one."""
    _exchange(engine, request.outputs, request.inputs * engine.size)


def gather(engine: NetworkEngine, request: Request) -> None:
    """Every rank sends its input to the root."""
    outputs = request.outputs if engine.rank == request.root else [_NOTHING] * engine.size
    mine = request.inputs[0]
    _exchange(engine, outputs, [mine if rank == request.root else _NOTHING for rank in range(engine.size)])


def scatter(engine: NetworkEngine, request: Request) -> None:
    """The root sends each rank its part."""
    inputs = request.inputs if engine.rank == request.root else [_NOTHING] * engine.size
    output = request.outputs[0]
    _exchange(engine, [output if rank == request.root else _NOTHING for rank in range(engine.size)], inputs)


def reduce_scatter(engine: NetworkEngine, request: Request) -> None:
    """Every two ranks exchange their parts, of which each combines its own: (N-1)/N*S bytes on each rank."""
    _combine_slices(engine, request, request.inputs, request.outputs[0])


def all_to_all(engine: NetworkEngine, request: Request) -> None:
    """Every two ranks exchange their parts for each other."""
    _exchange(engine, request.outputs, request.inputs)


def barrier(engine: NetworkEngine, request: Request) -> None:
    """The agreement already waits for every rank."""


def _combine_slices(
    engine: NetworkEngine, request: Request, parts_of_mine: Sequence[memoryview], result: memoryview
) -> None:
    """Give each rank its part of this one's, and put what they combine to for this rank into *result*."""
    parts = [room(len(result)) for _ in range(engine.size)]
    _exchange(engine, parts, parts_of_mine)
    request.combine(result, parts, _factors(engine, request))


def _factors(engine: NetworkEngine, request: Request) -> list[float]:
    """Return the factors of all ranks, where the op has any."""
    if request.op != ReduceOp.PREMUL_SUM:
        return []
    all_factors = room(8 * engine.size)
    engine.wait_for(engine.link.all_gather(all_factors, memoryview(bytearray(pack("d", request.factor)))))
    return list(unpack(f"{engine.size}d", all_factors))


def _exchange(engine: NetworkEngine, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> None:
    engine.wait_for(engine.link.all_to_all(outputs, inputs))


def room(size: int) -> memoryview:
    """Return memory for *size* bytes."""
    return np.empty(size, np.uint8).data  # which nobody has to clear


def slices(part: memoryview, count: int, dtype: str) -> list[memoryview]:
    """Return *part* in *count* pieces of whole elements."""
    width = dtype_bytes(dtype)
    elements = len(part) // width
    ends = [elements * (place + 1) // count * width for place in range(count)]
    return [part[start:end] for start, end in zip([0, *ends], ends, strict=False)]
