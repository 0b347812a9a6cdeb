"""Calls made with this frontend and with torch's own gloo, on the same ranks, and compared."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch_world import torch_numbers, world

import shim.frontends.torch.distributed as dist
from shim.errors import ShimError

GLOO_DTYPES = (
    *("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128"),
)


class Case(NamedTuple):
    """One call: ``call(module, rank, world_size)`` makes it and returns all that is to be compared.

    ``ours`` is for an intended difference: what this frontend does instead, a value or a class of exception, which is
    asserted, as is that torch does something else; ``why`` says why.
    """

    name: str
    call: Callable[[Any, int, int], Any]
    ours: Any = ...
    why: str = ""


class Raised(NamedTuple):
    """That a call raised, and which of Python's own exceptions that is."""

    kinds: frozenset[type]


@contextmanager
def both() -> Iterator[Any]:
    """Initialise this frontend and torch.distributed, which is returned."""
    import torch.distributed as theirs

    with world():
        paths = [tempfile.mktemp(prefix="gloo")] if dist.get_rank() == 0 else [None]  # a name is all that is needed
        dist.broadcast_object_list(paths)
        rank, size, limit = dist.get_rank(), dist.get_world_size(), timedelta(seconds=20)
        theirs.init_process_group("gloo", f"file://{paths[0]}", limit, size, rank)
        try:
            yield theirs
            dist.barrier()
        finally:
            theirs.destroy_process_group()
            if rank == 0:
                Path(paths[0]).unlink(missing_ok=True)  # another rank's torch may remove it at the same time


def compare(cases: Sequence[Case], theirs: Any) -> None:
    """Make every call with both, and compare what is returned, written, warned of and raised."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for case in cases:
        real, mine = outcome(case, theirs, rank, size), outcome(case, dist, rank, size)
        if case.ours is not ...:
            assert_differs(case, real, mine)
        elif isinstance(real[0], Raised):
            assert isinstance(mine[0], Raised), f"{case.name}: torch raised {real}, ours gave {mine}"
            assert real[0].kinds <= mine[0].kinds, f"{case.name}: torch raised {real}, ours {mine}"
        else:
            assert mine == real, f"{case.name}: torch gave {real}, ours {mine}"


def assert_differs(case: Case, real: Any, mine: Any) -> None:
    assert case.why, f"{case.name} has no reason for its difference"
    if isinstance(case.ours, type):
        assert isinstance(mine[0], Raised), f"{case.name}: ours gave {mine}"
        assert case.ours in mine[0].kinds, f"{case.name}: ours raised {mine}"
        same = isinstance(real[0], Raised) and real[0].kinds <= mine[0].kinds
    else:
        expected = case.ours(dist.get_rank(), dist.get_world_size()) if callable(case.ours) else case.ours
        assert mine[0] == plain(expected), f"{case.name}: ours gave {mine}, {expected} was declared"
        same = mine == real
    assert not same, f"{case.name}: torch does the same by now"


def outcome(case: Case, module: Any, rank: int, size: int) -> tuple[Any, list[str]]:
    """Return what the call gave or raised, and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            given = plain(case.call(module, rank, size))
        except Exception as error:  # of whatever class: that is what is compared
            if module is dist and not isinstance(error, ShimError):
                raise
            given = Raised(frozenset(kind for kind in type(error).__mro__ if kind.__module__ == "builtins"))
    # What is deprecated is compared where the frontend follows the torch beside it: SHIM_API is empty in a nightly run.
    told = [one for one in caught if one.category is not FutureWarning or not os.environ.get("SHIM_API")]
    return given, sorted({warning.category.__name__ for warning in told})


def plain(thing: Any) -> Any:
    """Return *thing* as something that can be compared: bytes of tensors, and the names of works and groups."""
    if isinstance(thing, torch.Tensor):
        return str(thing.dtype), tuple(thing.shape), thing.resolve_conj().contiguous().flatten().tolist()
    if isinstance(thing, (list, tuple)):
        return [plain(one) for one in thing]
    if isinstance(thing, torch._C.Future):
        return ["Future", plain(thing.wait())]
    if type(thing).__name__ in ("Work", "_IllegalWork", "P2POp", "ProcessGroup"):
        return type(thing).__name__
    return thing


def filled(rank: int, shape: Any = (2, 3), dtype: str = "float32") -> Any:
    return torch_numbers(rank, shape, dtype)


def empty(shape: Any = (2, 3), dtype: str = "float32") -> Any:
    return torch.zeros(shape, dtype=getattr(torch, dtype))


def waited(work: Any) -> Any:
    """Wait for the Work of an asynchronous call; return what that says, and what kind of work it was."""
    return plain(work), work.wait(), work.is_completed()
