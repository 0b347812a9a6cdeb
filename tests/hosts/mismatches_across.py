"""The program that ``test_engines_across`` starts on hosts: twenty ways in which one rank's call differs, and then random calls.

``mismatches_across.py CALLS`` ends with status 1 where something is wrong, and says how long the slowest error took to come.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from known_values import FAILURES, expect

import shim.frontends.torch.distributed as dist
from shim.conformance.soak import soak
from shim.errors import ArgumentError, MismatchError, ShimError

sys.path.insert(0, str(Path(__file__).parents[1] / "core" / "engines"))
from emulated_hosts import close_difference

_SLOWEST = 0.1  # seconds till all have raised, from the moment at which all have begun; a warm-up comes first
Way = tuple[Callable[[], object], Callable[[], object]]  # the call of all ranks but one, and that one's


def ways(size: int) -> list[Way]:
    def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
        return np.ones(shape, dtype)

    def parts(count: int, *shape: int) -> list[np.ndarray]:
        return [ones(*shape) for _ in range(count)]

    even, uneven = [1] * size, [2, *[1] * (size - 2), 0]
    return [
        (lambda: dist.all_reduce(ones(4)), lambda: dist.all_reduce(ones(5))),
        (lambda: dist.all_reduce(ones(4)), lambda: dist.all_reduce(ones(2, 2))),
        (lambda: dist.all_reduce(ones(4)), lambda: dist.all_reduce(ones(4, dtype="float64"))),
        (lambda: dist.all_reduce(ones(4)), lambda: dist.all_reduce(ones(4, dtype="int32"))),
        (lambda: dist.all_reduce(ones(4)), lambda: dist.all_reduce(ones(4), op=dist.ReduceOp.MAX)),
        (lambda: dist.all_reduce(ones(4)), lambda: dist.all_reduce(ones(4), op=dist.ReduceOp.AVG)),
        (lambda: dist.all_reduce(ones(1 << 20)), lambda: dist.all_reduce(ones((1 << 20) + 1))),
        (lambda: dist.all_reduce(ones(4)), lambda: dist.broadcast(ones(4), 0)),
        (lambda: dist.all_reduce(ones(4)), lambda: dist.all_reduce(ones(1 << 20))),
        (lambda: dist.all_reduce(ones(4)), dist.barrier),
        (lambda: dist.broadcast(ones(4), 0), lambda: dist.broadcast(ones(4), 1)),
        (lambda: dist.broadcast(ones(4), 0), lambda: dist.broadcast(ones(3), 0)),
        (lambda: dist.reduce(ones(4), 0), lambda: dist.reduce(ones(4), 1)),
        (lambda: dist.reduce(ones(4), 0), lambda: dist.all_reduce(ones(4))),
        (lambda: dist.all_gather(parts(size, 4), ones(4)), lambda: dist.all_gather(parts(size, 5), ones(5))),
        (lambda: dist.all_gather(parts(size, 4), ones(4)), lambda: dist.all_gather(parts(size - 1, 4), ones(4))),
        (lambda: dist.scatter(ones(4), parts(size, 4) if dist.get_rank() == 0 else None, 0), lambda: dist.scatter(ones(5), None, 0)),
        (lambda: dist.reduce_scatter(ones(4), parts(size, 4)), lambda: dist.reduce_scatter(ones(5), parts(size, 5))),
        (
            lambda: dist.all_to_all_single(ones(size), ones(size), even, even),
            lambda: dist.all_to_all_single(ones(size + 1), ones(size + 1), uneven, uneven),
        ),
        (lambda: dist.all_to_all_single(ones(size), ones(size)), lambda: dist.all_gather(parts(size, 4), ones(4))),
    ]  # fmt: skip


def mismatches() -> float:
    """Let each rank be the one that differs, in each way. Return the longest time until a rank had its error."""
    slowest, rank = 0.0, dist.get_rank()
    for number, (right, wrong) in enumerate(ways(dist.get_world_size())):
        for culprit in range(1, dist.get_world_size()):
            dist.barrier()
            begun = time.monotonic()
            told = _raised(wrong if rank == culprit else right)
            slowest = max(slowest, time.monotonic() - begun)
            allowed = (MismatchError, ArgumentError) if rank == culprit else (MismatchError,)
            expect(f"the error of way {number}, {told!r}", isinstance(told, allowed), True)
            if isinstance(told, MismatchError):
                expect(
                    f"the ranks told of in {told}",
                    all(f"  rank {one}" in str(told) for one in range(dist.get_world_size())),
                    True,
                )
    return slowest


def _raised(call: Callable[[], object]) -> ShimError | None:
    try:
        call()
    except ShimError as error:
        return error
    return None


def main() -> None:
    dist.init_process_group()
    assert len(ways(dist.get_world_size())) == 20
    mismatches()
    slowest = mismatches()
    expect(f"{slowest:.3f} s till the last error, at most", slowest < _SLOWEST, True)
    soak.difference = close_difference  # type: ignore[assignment]  # sums are made within hosts first
    found = soak.carry_out(soak.Era(1, 0, int(sys.argv[1]), groups=3, most=2 << 20))
    expect("differences", found.differences, [])
    dist.destroy_process_group()
    sys.stdout.write(
        f"the slowest error came after {slowest * 1e3:.1f} ms; {found.calls} random calls, {found.mistakes} mistakes\n"
    )
    for failure in FAILURES:
        sys.stdout.write(f"WRONG {failure}\n")
    sys.exit(bool(FAILURES))


if __name__ == "__main__":
    main()
