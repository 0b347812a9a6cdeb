"""What SHIM_TRACE records of calls with tensors on devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_device import FakeTensor, load

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.core.tracing.layout import State
from shim.core.work import Batch
from shim.errors import DeviceTensorError
from shim.trace.reading import read_recording

ME = Caller("test")
SUM = ReduceOp.SUM


@pytest.mark.ranks(2)
def test_a_call_on_a_device_is_recorded_once(rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load()
    monkeypatch.setenv("SHIM_TRACE", str(tmp_path / "recording"))
    monkeypatch.setenv("SHIM_TRACE_DIGESTS", "1")
    group = groups.enter_world(ME, "test")
    try:
        there, here = FakeTensor(np.ones((2, 3), "float32"), rank), np.ones(5)
        calls.all_reduce(ME, group, there, there, SUM, now=True)
        calls.all_reduce(ME, group, there, there, SUM).wait()
        calls.all_reduce(ME, group, here, here, SUM, now=True)
        if rank == 0:
            calls.send(ME, group, there, 1, now=True)
        else:
            calls.receive(ME, group, there, 0, now=True)
        Batch([calls.all_reduce(ME, group, tensor, tensor, SUM) for tensor in (here, there, here)]).wait()
    finally:
        groups.leave_world("test")
    seen = [call for call in read_recording(tmp_path / "recording").ranks[rank].calls if not call.shape.is_internal]
    assert [call.state for call in seen] == [State.ENDED] * 7
    there_text = "float32 [2, 3] on cuda"
    tensors = [call.shape.inputs or call.shape.outputs for call in seen[:4]]
    assert [one and one.text() for one in tensors] == [there_text, there_text, "float64 [5]", there_text]
    assert len({call.shape.group for call in seen}) == 1
    assert [call.output_digest is None for call in seen[:4]] == [True, True, False, True]


@pytest.mark.ranks(1)
def test_a_call_that_nobody_serves_is_recorded_as_refused(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load()
    monkeypatch.setenv("SHIM_TRACE", str(tmp_path / "recording"))
    group = groups.enter_world(ME, "test", backend="cpu:gloo")
    try:
        there = FakeTensor(np.ones(3), rank)
        with pytest.raises(DeviceTensorError):
            calls.all_reduce(ME, group, there, there, SUM, now=True)
    finally:
        groups.leave_world("test")
    (call,) = (call for call in read_recording(tmp_path / "recording").ranks[0].calls if not call.shape.is_internal)
    assert call.state == State.FAILED
    assert call.failure is not None
    assert "The engine for cuda cannot be had" in call.failure.text
