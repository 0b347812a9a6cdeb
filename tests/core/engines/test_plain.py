"""The engine of defaults alone against the native one: the same bits, the same checks, and messages apart from the user's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from shim.conformance.soak.draw import KINDS
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.base import check_call
from shim.core.engines.defaults import COLLECTIVE_TAG
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, MismatchError

ME = Caller("test", output="tensor", input="tensor")
FLOATS = ("float16", "bfloat16", "float32", "complex64")
LARGE = (1 << 20) // 2 + 3  # elements of two bytes: a piece and a part of one


@contextmanager
def two_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ProcessGroup, ProcessGroup]]:
    """Groups of all ranks on either engine."""
    monkeypatch.delenv("SHIM_ENGINE", raising=False)
    try:
        groups.enter_world(ME, "test", timeout=20.0)
        yield groups.new_group(ME, backend="shared_memory"), groups.new_group(ME, backend="plain")
    finally:
        groups.close_world()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.PREMUL_SUM])
def test_sums_have_the_same_bits(rank: int, world_size: int, op: ReduceOp, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_groups(monkeypatch) as both:
        for kind in (kind for kind in KINDS if kind.name in FLOATS):
            for rows in (0, 1, LARGE if kind.name == "float16" else 1000):
                random = np.random.default_rng([rank, rows])
                mine = random.standard_normal(world_size * rows).astype(kind.dtype)
                results = []
                for group in both:
                    everywhere, at_root, part = mine.copy(), mine.copy(), np.empty(rows, kind.dtype)
                    factor = rank + 0.3
                    calls.all_reduce(ME, group, everywhere, everywhere, op, factor, now=True)
                    calls.reduce(ME, group, at_root, mine, op, 1, factor, now=True)
                    calls.reduce_scatter(ME, group, part, mine, op, factor, now=True)
                    assert at_root.tobytes() == (everywhere if rank == 1 else mine).tobytes()
                    assert part.tobytes() == everywhere[rank * rows : (rank + 1) * rows].tobytes()
                    results.append(everywhere.tobytes())
                assert results[0] == results[1], kind.name


@pytest.mark.ranks(2)
def test_messages_of_collectives_are_no_users(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receive from any rank, with whatever tag, does not take them, and a message that waits does not stop them."""
    with two_groups(monkeypatch) as (_, plain):
        got, total = np.zeros(70_000), np.full(70_000, rank + 1.0)
        message = calls.receive(ME, plain, got, None, 0) if rank == 0 else calls.send(ME, plain, total + 5, 0, 0)
        message.start()
        calls.all_reduce(ME, plain, total, total, ReduceOp.SUM, now=True)
        message.wait()
        assert set(total) == {3.0}
        assert set(got) == ({7.0} if rank == 0 else {0.0})


@pytest.mark.ranks(2)
def test_the_ranks_agree_before_anything_is_written(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_groups(monkeypatch) as (_, plain):
        tensor = np.full(3 + rank, 7.0)
        with pytest.raises(MismatchError, match=r"rank 1: all_reduce\(float64 \[4\], SUM\)"):
            calls.all_reduce(ME, plain, tensor, tensor, ReduceOp.SUM, now=True)
        assert set(tensor) == {7.0}
        calls.barrier(ME, plain, now=True)


def test_a_request_says_what_was_checked() -> None:
    tensor = np.arange(12, dtype=np.int32).reshape(4, 3)[:, ::2]
    request = check_call(
        "all_to_all", 1, 2, outputs=np.zeros((4, 2), np.int32), inputs=tensor, output_splits=[3, 1], input_splits=[3, 1]
    )
    assert (request.collective, request.rank, request.size, request.dtype) == ("all_to_all", 1, 2, "int32")
    assert [len(part) for part in request.outputs] == [3 * 2 * 4, 1 * 2 * 4]
    assert [len(part) for part in request.inputs] == [3 * 2 * 4, 1 * 2 * 4]
    output, input = request.views
    assert (output.role, input.role) == ("output", "input")
    assert (input.shape, input.strides, input.device) == ([4, 2], [3, 2], "cpu")
    assert input.address == tensor.ctypes.data


def test_a_request_is_refused_as_a_call_is() -> None:
    with pytest.raises(ArgumentError, match=r"^\{output\} and \{input\} must hold the same number of elements"):
        check_call("all_reduce", 0, 2, outputs=np.zeros(3), inputs=np.zeros(4), op=ReduceOp.SUM)
    with pytest.raises(ArgumentError, match="there is no collective 'send'"):
        check_call("send", 0, 2, inputs=np.zeros(3))


def test_no_user_has_the_tag_of_collectives() -> None:
    assert not -(1 << 31) <= COLLECTIVE_TAG < 1 << 31
