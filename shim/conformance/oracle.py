"""What every collective must give, said in plain numpy: one function per row of the table of collectives.

Nothing here is shared with the engines. Every function takes what all ranks put in, indexed by rank, and returns what
all ranks get; None stands for a rank whose output is left as it was. Arrays are never changed and never shared.

A part is what one rank sends to, or gets from, another; parts may have different sizes. ``cut`` and ``joined``
translate between one array and its parts. Reduce ops are named as in ``shim.core.reduce_ops.ReduceOp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rounding = Callable[[Array], Array]
Message = tuple[int, int, Array]  # peer, tag, content


def broadcast(inputs: Sequence[Array], root: int) -> list[Array]:
    """Everyone gets *root*'s array."""
    return [inputs[root].copy() for _ in inputs]


def all_reduce(
    inputs: Sequence[Array], op: str, factors: Sequence[float] | None = None, rounding: Rounding | None = None
) -> list[Array]:
    """Everyone gets the combination of all arrays; see ``reduce_elements``."""
    result = reduce_elements(inputs, op, factors, rounding)
    return [result.copy() for _ in inputs]


def reduce(
    inputs: Sequence[Array],
    op: str,
    root: int,
    factors: Sequence[float] | None = None,
    rounding: Rounding | None = None,
) -> list[Array | None]:
    """*root* alone gets the combination of all arrays."""
    result = reduce_elements(inputs, op, factors, rounding)
    return [result if rank == root else None for rank in range(len(inputs))]


def all_gather(inputs: Sequence[Array]) -> list[list[Array]]:
    """Everyone gets everyone's array, in rank order."""
    return [[part.copy() for part in inputs] for _ in inputs]


def gather(inputs: Sequence[Array], root: int) -> list[list[Array] | None]:
    """*root* alone gets everyone's array, in rank order."""
    return [[part.copy() for part in inputs] if rank == root else None for rank in range(len(inputs))]


def scatter(inputs: Sequence[Sequence[Array] | None], root: int) -> list[Array]:
    """Everyone gets the part that *root* holds for it; the other ranks' inputs play no role."""
    parts = inputs[root]
    if parts is None or len(parts) != len(inputs):
        raise ValueError(f"the root must hold {len(inputs)} parts")
    return [part.copy() for part in parts]


def reduce_scatter(
    inputs: Sequence[Sequence[Array]],
    op: str,
    factors: Sequence[float] | None = None,
    rounding: Rounding | None = None,
) -> list[Array]:
    """Rank r gets the combination of everyone's part r."""
    return [reduce_elements([parts[r] for parts in inputs], op, factors, rounding) for r in range(len(inputs))]


def all_to_all(inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Rank r gets everyone's part r, in rank order."""
    return [[parts[r].copy() for parts in inputs] for r in range(len(inputs))]


def barrier(begun: Sequence[float]) -> list[float]:
    """Given when each rank began to wait, return the earliest moment at which each may go on."""
    return [max(begun) for _ in begun]


def send(sent: Sequence[Sequence[Message]]) -> list[list[Message]]:
    """Given each rank's sent (receiver, tag, array), return what waits at each rank as (sender, tag, array).

    Messages of one sender to one receiver stay in the order in which they were sent.
    """
    waiting: list[list[Message]] = [[] for _ in sent]
    for sender, messages in enumerate(sent):
        for receiver, tag, content in messages:
            waiting[receiver].append((sender, tag, content.copy()))
    return waiting


def receive(sent: Sequence[Sequence[Message]], wanted: Sequence[Sequence[tuple[int | None, int]]]) -> list[list[Array]]:
    """Given all sent messages and each rank's wanted (sender, tag), return what each rank receives.

    A sender of None is any rank. Raises LookupError for a receive that would wait for ever, ValueError for one whose
    result depends on which of several senders comes first.
    """
    waiting = send(sent)
    return [[_taken(waiting[rank], sender, tag) for sender, tag in wishes] for rank, wishes in enumerate(wanted)]


def _taken(waiting: list[Message], sender: int | None, tag: int) -> Array:
    """Remove and return the first message that fits."""
    fitting = [i for i, (peer, its_tag, _) in enumerate(waiting) if its_tag == tag and sender in (None, peer)]
    if not fitting:
        raise LookupError(f"nobody sends a message with tag {tag} that this rank could take")
    if len({waiting[i][0] for i in fitting}) > 1:
        raise ValueError(f"messages with tag {tag} of several ranks fit: which comes first is not determined")
    return waiting.pop(fitting[0])[2]


def cut(array: Array, rows: int | Sequence[int]) -> list[Array]:
    """Cut *array* along dimension 0: into *rows* equal parts, or into parts of so many rows each."""
    if isinstance(rows, int):
        if array.shape[0] % rows:
            raise ValueError(f"{array.shape[0]} rows cannot be cut into {rows} equal parts")
        rows = [array.shape[0] // rows] * rows
    if sum(rows) != array.shape[0]:
        raise ValueError(f"parts of {list(rows)} rows do not make up {array.shape[0]} rows")
    ends = np.cumsum(np.asarray(rows, dtype=int))
    return [array[end - count : end].copy() for count, end in zip(rows, ends, strict=True)]


def joined(parts: Iterable[Array]) -> Array:
    """Join parts along dimension 0."""
    return np.concatenate(list(parts), axis=0)


def bfloat16(values: Array) -> Array:
    """Round float32 *values* to the nearest bfloat16, ties to even, and return them as float32."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    upper_half = np.uint32(0xFFFF0000)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & upper_half
    quiet_nan = (bits | np.uint32(0x00400000)) & upper_half
    return np.where(np.isnan(values), quiet_nan, rounded).astype(np.uint32).view(np.float32)


def reduce_elements(
    inputs: Sequence[Array], op: str, factors: Sequence[float] | None = None, rounding: Rounding | None = None
) -> Array:
    """Combine the ranks' arrays by *op*, element by element, in the order of the ranks.

    float16 is combined in float32 and rounded once at the end. For bfloat16, which numpy lacks, pass its values as
    float32 and ``rounding=bfloat16``. Integers wrap around. *factors*, one per rank, belong to PREMUL_SUM.
    Raises ValueError for an op that is not defined for the dtype.
    """
    dtype = inputs[0].dtype
    _check(op, dtype, factors, len(inputs))
    terms = [_term(array, None if factors is None else factors[rank]) for rank, array in enumerate(inputs)]
    combine = _BOOL[op] if dtype == np.bool_ else _COMBINE[op]
    with np.errstate(all="ignore"):
        total = terms[0]
        for term in terms[1:]:
            total = combine(total, term)
        if op == "AVG":
            total = _by_part(total, lambda part: part / part.dtype.type(len(inputs)))
        total = total if rounding is None else rounding(total)
        return np.array(total, dtype=dtype)


def _check(op: str, dtype: np.dtype[Any], factors: Sequence[float] | None, size: int) -> None:
    if op not in _COMBINE:
        raise ValueError(f"there is no reduce op {op!r}; there are {', '.join(_COMBINE)}")
    if dtype.kind not in _KINDS[op]:
        raise ValueError(f"{op} is not defined for {dtype}")
    if (op == "PREMUL_SUM") != (factors is not None):
        raise ValueError("PREMUL_SUM takes factors, and nothing else does")
    if factors is not None and len(factors) != size:
        raise ValueError(f"there must be one factor per rank, got {len(factors)} for {size} ranks")


def _term(array: Array, factor: float | None) -> Array:
    """Return one rank's contribution, in the precision that it is combined in."""
    wide = array.astype(np.float32 if array.dtype == np.float16 else array.dtype)
    if factor is None:
        return wide
    with np.errstate(all="ignore"):
        return _by_part(wide, lambda part: part * part.dtype.type(factor))


def _by_part(array: Array, change: Callable[[Array], Array]) -> Array:
    """Apply *change* to a real array, or to the real and the imaginary part of a complex one.

    numpy would divide by a complex number instead, which rounds differently.
    """
    if array.dtype.kind != "c":
        return np.asarray(change(array))
    return _complex(change(array.real), change(array.imag), array.dtype)


def _product(left: Array, right: Array) -> Array:
    """Multiply; complex numbers by their four real products, each rounded, where numpy may fuse two roundings into one."""
    if left.dtype.kind != "c":
        return left * right
    real = left.real * right.real - left.imag * right.imag
    return _complex(real, left.real * right.imag + left.imag * right.real, left.dtype)


def _complex(real: Array, imaginary: Array, dtype: np.dtype[Any]) -> Array:
    result = np.empty(np.shape(real), dtype)
    result.real = real
    result.imag = imaginary
    return result


def _least(left: Array, right: Array) -> Array:
    """Return the smaller element, the left one of two equals; a NaN wins, the first if there are two."""
    return np.where(_is_nan(left) | ~((right < left) | _is_nan(right)), left, right)


def _greatest(left: Array, right: Array) -> Array:
    """Return the greater element, the left one of two equals; a NaN wins, the first if there are two."""
    return np.where(_is_nan(left) | ~((right > left) | _is_nan(right)), left, right)


def _is_nan(array: Array) -> Array:
    return np.not_equal(array, array)


_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "SUM": np.add,
    "AVG": np.add,
    "PRODUCT": _product,
    "MIN": _least,
    "MAX": _greatest,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
    "PREMUL_SUM": np.add,
}
_BOOL: dict[str, Callable[[Array, Array], Array]] = {
    "SUM": np.logical_or,
    "MAX": np.logical_or,
    "BOR": np.logical_or,
    "PRODUCT": np.logical_and,
    "MIN": np.logical_and,
    "BAND": np.logical_and,
    "BXOR": np.logical_xor,
}
_KINDS = {  # numpy's letters: b bool, i and u integers, f float, c complex
    "SUM": "biufc",
    "AVG": "fc",
    "PRODUCT": "biufc",
    "MIN": "biuf",
    "MAX": "biuf",
    "BAND": "biu",
    "BOR": "biu",
    "BXOR": "biu",
    "PREMUL_SUM": "fc",
}
