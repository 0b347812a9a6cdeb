"""Real torch on gloo beside ours, in the same processes: the same call to both, and what each of them did."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gradients import weights
from rank_numbers import numbers
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import ShimError


@dataclass
class Side:
    """One of the two: its modules, the whole world, the world's ranks 1 and up as a group, and who this is."""

    dist: Any
    nn: Any
    f: Any
    everyone: Any
    upper: Any
    rank: int
    size: int

    def x(self, *shape: int, wants_gradient: bool = True, salt: int = 0) -> Any:
        made = torch.from_numpy(numbers(self.rank + 7 * salt, shape)) + 1
        return made.requires_grad_(wants_gradient)

    def empty(self, *shape: int) -> Any:
        return torch.zeros(*shape, dtype=torch.float64)


@contextmanager
def sides(rank: int, size: int) -> Iterator[tuple[Side, Side]]:
    """Ours, and real torch's own world of the same processes."""
    import torch.distributed as theirs

    importlib.import_module("torch.distributed.nn.functional")  # with a group there, that would be its default for ever
    with world():
        names: list[Any] = [None] * size
        made = tempfile.mkdtemp() if rank == 0 else None
        dist.all_gather_object(names, made)
        theirs.init_process_group("gloo", init_method=f"file://{names[0]}/store", rank=rank, world_size=size)
        try:
            yield tuple(_side(root, rank, size) for root in ("shim.frontends.torch.distributed", "torch.distributed"))
            theirs.barrier()
        finally:
            theirs.destroy_process_group()
            if rank == 0:
                Path(names[0], "store").unlink(missing_ok=True)
                Path(names[0]).rmdir()


def _side(root: str, rank: int, size: int) -> Side:
    module, nn, f = (
        importlib.import_module(root + name) for name in ("", ".nn.functional", "._functional_collectives")
    )
    upper = module.new_group(list(range(1, size))) if size > 2 else None
    return Side(module, nn, f, module.group.WORLD, upper, rank, size)


Call = Callable[[Side], Any]


def outcome(side: Side, call: Call) -> Any:
    """The call's result as plain numbers, and the gradients of its inputs; or the class of its error."""
    inputs: list[Any] = []
    make = side.x

    def remembered(*shape: int, **options: Any) -> Any:
        inputs.append(make(*shape, **options))
        return inputs[-1]

    side.x = remembered
    try:
        result = call(side)
        outputs = list(result) if isinstance(result, (list, tuple)) else [result]
        plain = [(tuple(one.shape), str(one.dtype), one.tolist()) for one in outputs]
    except Exception as error:  # of whatever class: that is what is compared
        return _class_of(side, error)
    finally:
        side.x = make
    return plain, _gradients(side, outputs, inputs)


def _class_of(side: Side, error: Exception) -> type[Exception]:
    """Return the class of *error*; what ours raises must be an error of ours, else it is a mistake."""
    if side.dist is dist and not isinstance(error, ShimError):
        raise error
    return type(error)


def _gradients(side: Side, outputs: list[Any], inputs: list[Any]) -> Any:
    wanting = [one for one in outputs if one.requires_grad]
    if not wanting:
        return "none"
    loss = sum((one * torch.from_numpy(weights(side.rank, i, one.shape))).sum() for i, one in enumerate(wanting))
    try:
        loss.backward()
    except Exception as error:  # as above
        return _class_of(side, error)
    return [None if one.grad is None else one.grad.tolist() for one in inputs]


def assert_close(ours: Any, theirs: Any) -> None:
    """Results exactly, gradients but for the last digits; None and zeros are the same gradient."""
    assert ours[0] == theirs[0]
    if isinstance(theirs[1], list):
        assert isinstance(ours[1], list), ours
        for mine, other in zip(ours[1], theirs[1], strict=True):
            mine, other = np.array(0.0 if mine is None else mine), np.array(0.0 if other is None else other)
            np.testing.assert_allclose(*np.broadcast_arrays(mine, other), rtol=1e-12, atol=1e-12)
    else:
        assert ours[1] == theirs[1]
