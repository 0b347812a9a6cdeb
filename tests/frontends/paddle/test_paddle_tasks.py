"""What is remembered of works that were started in the background, without any that run."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from shim.core.callers import Caller
from shim.core.work import Work
from shim.errors import ShimError
from shim.frontends._paddle import tasks


class Started(Work):
    """A work that ends when the test says so."""

    __slots__ = ("__weakref__", "error", "has_ended", "looks")

    def __init__(self) -> None:
        self.has_ended = False
        self.error: ShimError | None = None
        self.looks = 0

    def start(self) -> Work:
        return self

    def wait(self, timeout: float = -1.0) -> None:
        self.has_ended = True
        if self.error is not None:
            raise self.error

    def is_completed(self) -> bool:
        self.looks += 1
        return self.has_ended

    def exception(self) -> ShimError | None:
        return self.error if self.has_ended else None


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    tasks.forget_all()


def begin(*works: Started) -> list[tasks.Task]:
    return [task for work in works if (task := tasks.finish(work, False, None)) is not None]


def fail(work: Started, text: str) -> None:
    work.has_ended = True
    work.error = Caller("test").explain(ShimError(text))


def test_each_call_looks_at_few_of_those_before_it() -> None:
    works = [Started() for _ in range(1000)]
    begin(*works)
    assert sum(work.looks for work in works) <= 1000


def test_what_has_ended_is_let_go_of_even_behind_what_runs() -> None:
    slow, work = Started(), Started()
    begin(slow, work)
    work.has_ended = True
    gone = weakref.ref(work)
    del work
    begin(Started(), Started())
    gc.collect()
    assert gone() is None
    assert not slow.has_ended


def test_of_what_failed_the_error_is_kept_and_not_the_tensors() -> None:
    first, second = Started(), Started()
    begin(first, second)
    fail(second, "second")
    fail(first, "first")
    gone = [weakref.ref(first), weakref.ref(second)]
    del first, second
    begin(Started(), Started())
    gc.collect()
    assert [one() for one in gone] == [None, None]
    with pytest.raises(ShimError, match="first"):
        tasks.settle(0)
    tasks.settle(0)


@pytest.mark.parametrize("is_seen_before", [False, True])
def test_an_error_is_told_once(is_seen_before: bool) -> None:
    work = Started()
    [task] = begin(work)
    fail(work, "mine")
    if is_seen_before:
        begin(Started(), Started())
    with pytest.raises(ShimError, match="mine"):
        task.wait()
    tasks.settle(0)


def test_settling_waits_for_everything_and_tells_the_first_error() -> None:
    works = [Started() for _ in range(3)]
    begin(*works)
    works[1].error, works[2].error = ShimError("one"), ShimError("two")
    with pytest.raises(ShimError, match="one"):
        tasks.settle(0)
    assert all(work.has_ended for work in works)
    tasks.settle(0)


def interrupted(function: Callable[..., object], step: int, handler: Callable[[], object]) -> Callable[..., None]:
    """Return *function* with *handler* called before its bytecode number *step*, as a signal might."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        del argument
        if frame.f_code is not function.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == step:
                handler()
        return trace

    def call(*arguments: Any) -> None:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            function(*arguments)
        finally:
            sys.settrace(before)

    return call


def test_a_signals_handler_may_start_and_settle_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    for step in itertools.count(1):
        works = [Started() for _ in range(3)]
        begin(*works)
        for work in works[:2]:
            work.has_ended = True

        def handler(step: int = step) -> None:
            called.append(step)
            patch.undo()
            begin(Started())
            tasks.settle(0)

        with monkeypatch.context() as patch:
            patch.setattr(tasks, "_let_go_of_ended", interrupted(tasks._let_go_of_ended, step, handler))
            begin(Started())
        tasks.settle(0)
        assert all(work.has_ended for work in works)
        if step not in called:
            break
    assert len(called) > 10
