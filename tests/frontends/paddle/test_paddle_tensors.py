"""What the engine reads from Paddle's tensors: every dtype, views, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from paddle_world import PADDLE_DTYPES

from shim import _native
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import new_like, reader_for
from shim.errors import TensorError

pytestmark = pytest.mark.ranks(1)
ME = Caller("test", input="tensor", output="out")


def alone() -> ProcessGroup:
    return groups.enter_world(ME, "test")


def copy(group: ProcessGroup, output: Any, input: Any) -> None:
    calls.all_gather(ME, group, output, input).wait()


def sum_up(group: ProcessGroup, tensor: Any) -> None:
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()


@pytest.mark.parametrize("dtype", PADDLE_DTYPES)
def test_dtypes(dtype: str) -> None:
    import paddle

    group = alone()
    source = paddle.to_tensor([0.0, 1.0, 1.0]).astype(dtype)
    target = paddle.zeros([3]).astype(dtype)
    copy(group, target, source)
    assert bool((target == source).all())
    assert new_like(target, (2, 2)).dtype == source.dtype


def test_gradients_and_views() -> None:
    import paddle

    group = alone()
    leaf = paddle.ones([3])
    leaf.stop_gradient = False
    sum_up(group, leaf)
    target = paddle.zeros([3, 2])
    copy(group, target.t(), paddle.arange(6, dtype="float32").reshape([2, 3]))
    assert target.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_sparse_is_refused() -> None:
    import paddle

    group = alone()
    with pytest.raises(TensorError, match="to_dense"):
        sum_up(group, paddle.ones([3, 3]).to_sparse_coo(2))


@pytest.mark.parametrize("started", [False, True])
def test_a_gradient_of_what_was_overwritten(started: bool) -> None:
    """Paddle raises; its objects show where the number stands, so that it is not asked to raise it."""
    import paddle

    group, asked = alone(), []
    versions = reader_for(paddle.Tensor).versions
    assert versions is not None

    def rise(tensor: Any) -> None:
        asked.append(tensor)
        versions.rise(tensor)

    weight, kept = paddle.ones([2]), paddle.ones([2])
    weight.stop_gradient = False
    reader = reader_for(paddle.Tensor)._replace(versions=versions._replace(rise=rise))
    _native.set_reader_chooser(lambda kind: reader)
    try:
        loss = (weight * kept).sum()
        work = calls.all_reduce(ME, group, kept, kept, ReduceOp.SUM)
        if started:
            work.start()
            loss = (weight * kept).sum()  # while it is written
        work.wait()
    finally:
        _native.set_reader_chooser(reader_for)
    assert kept.inplace_version == 1 + started
    assert not any(one is kept for one in asked)
    with pytest.raises(RuntimeError, match="tensor_version"):
        loss.backward()
    sent = paddle.ones([2])
    copy(group, kept, sent)
    assert sent.inplace_version == 0
