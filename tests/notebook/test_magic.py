"""``%%ranks`` outside a kernel: what it refuses, and ranks that do not obey."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from child_processes import children
from IPython.core.error import UsageError

from shim import notebook
from shim.errors import StateError
from shim.notebook import magic
from shim.notebook.magic import Ranks


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    one = Ranks(SimpleNamespace(execution_count=1))
    yield one
    one.stop()


@pytest.mark.parametrize(
    ("line", "cell", "told"),
    [
        ("", "1", "%%ranks: say on how many ranks, as in %%ranks 4; none run yet"),
        ("0", "1", "the number of ranks must be at least 1 and at most 512, got 0"),
        ("513", "1", "the number of ranks must be at least 1 and at most 512, got 513"),
        ("four", "1", "%%ranks four: expected %%ranks [N] [--timeout SECONDS] above a cell"),
        ("2 3", "1", "%%ranks 2 3: expected"),
        ("2 --timeout", "1", "%%ranks 2 --timeout: expected"),
        ("2 --timeout x", "1", "%%ranks 2 --timeout x: expected"),
        ("2 --timeout -1", "1", "--timeout must be above 0 seconds, got -1"),
        ("2 --timeout nan", "1", "--timeout must be above 0 seconds, got nan"),
        ("2", None, "%ranks 2: expected %%ranks [N] [--timeout SECONDS] above a cell"),
    ],
)
def test_a_wrong_line_is_an_error(ranks: Ranks, line: str, cell: str | None, told: str) -> None:
    before = children()
    with pytest.raises(UsageError) as raised:
        ranks.ranks(line, cell)
    assert told in str(raised.value)
    assert children() == before


def test_too_many_ranks_for_this_process_are_an_error(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    before, left, pipe = (children(), len(os.listdir("/proc/self/fd"))), iter(range(3)), os.pipe

    def some_pipes() -> tuple[int, int]:
        if next(left, None) is None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return pipe()

    monkeypatch.setattr(os, "pipe", some_pipes)
    with pytest.raises(UsageError, match=r"%%ranks: 2 ranks cannot be started: .*Too many open files"):
        ranks.ranks("2", "1")
    assert (children(), len(os.listdir("/proc/self/fd"))) == before


def test_a_thread_cannot_run_cells(ranks: Ranks) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            ranks.ranks("2", "1")
        except UsageError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [str(error).partition(":")[0] for error in errors] == ["%%ranks works in the kernel's main thread only"]


def test_a_rank_that_ignores_two_interrupts_is_killed(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(magic, "COMMAND_GRACE", 1000.0)  # after the first
    before, began = children(), time.monotonic()
    for seconds in (2, 3):
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt) as raised:
        ranks.ranks("2", "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)")
    assert time.monotonic() - began < 30
    shown = raised.value._render_traceback_()  # type: ignore[attr-defined]  # as IPython calls it
    assert shown == [
        "KeyboardInterrupt: ranks 0-1: had not answered before the second interrupt",
        "",
        "All ranks were ended, all variables are gone; the next cell starts new ones.",
    ]
    assert children() == before


def test_without_ipython_loading_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    with pytest.raises(ImportError, match=r"pip install 'shim-collectives\[notebook\]'"):
        notebook.load_ipython_extension(None)


def test_without_a_shell_loading_says_how_to_load() -> None:
    with pytest.raises(StateError, match=r"load it there with %load_ext shim\.notebook"):
        notebook.load_ipython_extension(None)
