"""The engine's calls of CUDA's driver, one group after the other, without a framework and without NCCL."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

from findings import Findings

from shim.core.engines.nccl.driver import Driver, Event, IpcHandle, Stream, driver, loaded
from shim.errors import EngineError

_SIZE = 1 << 20
_RELEASE_THRESHOLD = 4


def check_driver(findings: Findings) -> None:
    """Make each group of calls on device 0, and go on where one fails."""
    cuda = driver()
    raw = ctypes.CDLL(loaded("libcuda.so")[0])
    findings.found["driver"] = loaded("libcuda.so")
    for check in (_contexts, _identity, _streams_and_events, _pool, _memory, _capture, _threads, _errors, _handles):
        with findings.case(check.__name__.strip("_").replace("_", " ")):
            check(cuda, raw)
    with cuda.on(0), findings.case("figures"):
        stream = Stream(cuda)
        event = Event(cuda)
        findings.figures["microseconds"] = {
            "context pushed and popped": _microseconds(lambda: _entered(cuda)),
            "event recorded": _microseconds(lambda: event.record(stream.handle)),
            "event asked": _microseconds(event.is_reached),
            "event made and recorded": _microseconds(lambda: Event(cuda).record(stream.handle)),
            "capture asked": _microseconds(lambda: cuda.is_capturing(stream.handle)),
        }
        stream.close()


def _microseconds(call: Callable[[], object], times: int = 1000) -> float:
    began = time.perf_counter()
    for _ in range(times):
        call()
    return round((time.perf_counter() - began) / times * 1e6, 2)


def _entered(cuda: Driver) -> None:
    with cuda.on(0):
        pass


def _contexts(cuda: Driver, raw: Any) -> None:
    assert not cuda.current_context().value, "a context is current before any was asked for"
    with cuda.on(0):
        outer = cuda.current_context().value
        with cuda.on(0):
            assert cuda.current_context().value == outer, "device 0 has two contexts"
        assert outer
    assert not cuda.current_context().value, "the context stays current"


def _identity(cuda: Driver, raw: Any) -> None:
    assert len(cuda.identity_of(0)) == 16
    assert cuda.capability_of(0) >= 50, cuda.capability_of(0)


def _streams_and_events(cuda: Driver, raw: Any) -> None:
    with cuda.on(0):
        first, second, event, end = Stream(cuda), Stream(cuda), Event(cuda), Event(cuda)
        event.record(first.handle)
        event.make_wait(second.handle)
        end.record(second.handle)
        _await(end)
        assert event.is_reached()
        event.record(None)  # the legacy default stream
        _await(event)
        for stream in (first, second):
            stream.close()


def _await(event: Event) -> None:
    until = time.monotonic() + 5.0
    while not event.is_reached():
        assert time.monotonic() < until, "an event is not reached"


def _pool(cuda: Driver, raw: Any) -> None:
    pool, kept = c_void_p(), c_uint64()
    with cuda.on(0):  # sets what is asked for here
        cuda.call("cuDeviceGetDefaultMemPool", byref(pool), c_int(0))
        cuda.call("cuMemPoolGetAttribute", pool, _RELEASE_THRESHOLD, byref(kept))
        assert kept.value >= 64 << 20, f"the pool keeps {kept.value} bytes"
        stream = Stream(cuda)
        with cuda.room(_SIZE, stream.handle) as at:
            assert at
        cuda.call("cuCtxSynchronize")
        stream.close()


def _memory(cuda: Driver, raw: Any) -> None:
    content, copied = bytes(range(256)) * (_SIZE // 256), ctypes.create_string_buffer(_SIZE)
    one, other = c_void_p(), c_void_p()
    with cuda.on(0):
        stream = Stream(cuda)
        for at in (one, other):
            cuda.call("cuMemAlloc_v2", byref(at), _SIZE)
        assert raw.cuMemcpyHtoDAsync_v2(one, content, c_size_t(_SIZE), stream.handle) == 0
        cuda.call("cuMemcpyDtoDAsync_v2", other, one, _SIZE, stream.handle)
        assert raw.cuMemcpyDtoHAsync_v2(copied, other, c_size_t(_SIZE), stream.handle) == 0
        cuda.call("cuCtxSynchronize")
        assert copied.raw == content, "other bytes come back"
        for at in (one, other):
            cuda.call("cuMemFree_v2", at)
        stream.close()


def _capture(cuda: Driver, raw: Any) -> None:
    """Another thread may look at an event meanwhile, and an event of the stream is not asked."""
    graph = c_void_p()
    with cuda.on(0):
        stream, outside, inside = Stream(cuda), Event(cuda), Event(cuda)
        outside.record(None)
        assert not cuda.is_capturing(stream.handle)
        assert raw.cuStreamBeginCapture_v2(stream.handle, c_int(0)) == 0
        assert cuda.is_capturing(stream.handle)
        inside.record(stream.handle)
        assert inside.is_captured
        assert inside.is_reached()
        told: list[object] = []
        _in_a_thread(lambda: _look(cuda, outside), told)
        error = raw.cuStreamEndCapture(stream.handle, byref(graph))
        assert (error, told) == (0, []), f"the capture ended with {error}; the other thread was told {told}"
        stream.close()


def _look(cuda: Driver, event: Event) -> None:
    with cuda.on(0), cuda.beside_captures():
        event.is_reached()


def _threads(cuda: Driver, raw: Any) -> None:
    """An event may be let go in a thread that has no context."""
    with cuda.on(0):
        events = [Event(cuda)]
        events[0].record(None)
    told: list[object] = []
    _in_a_thread(events.clear, told)
    assert not told, told
    with cuda.on(0):
        cuda.call("cuCtxSynchronize")


def _in_a_thread(body: Callable[[], object], told: list[object]) -> None:
    def carry_out() -> None:
        try:
            body()
        except Exception as error:
            told.append(error)

    thread = threading.Thread(target=carry_out)
    thread.start()
    thread.join()


def _errors(cuda: Driver, raw: Any) -> None:
    told = ""
    try:
        cuda.identity_of(999)
    except EngineError as error:
        told = str(error)
    assert "invalid device ordinal" in told, f"of device 999 is told {told!r}"


def _handles(cuda: Driver, raw: Any) -> None:
    at, handles = c_void_p(), [IpcHandle(), IpcHandle()]
    with cuda.on(0):
        cuda.call("cuMemAlloc_v2", byref(at), _SIZE)
        for handle in handles:
            cuda.call("cuIpcGetMemHandle", byref(handle), at)
        assert any(bytes(handles[0])), "the handle is empty"
        cuda.call("cuMemFree_v2", at)
