"""A test as pytest's process sends it to the rank processes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

_CAN_GO = (pytest.MonkeyPatch, pytest.TempPathFactory)  # those of pytest's own objects that work on a rank as well


@dataclass(frozen=True)
class TestCall:
    """A test as it is sent to the ranks; the arguments' values are pickled one by one.

    The imports of the modules below ``as_installed``, a folder, get views of the frameworks with the frontends in them; None for none.
    Of errors, ``hides_frames`` leaves out the frames that pytest would leave out.
    """

    __test__ = False  # not a test itself, whatever its name says

    path: str
    module: str
    qualname: str
    arguments: dict[str, bytes]
    wants_rank: bool
    warning_filters: tuple[str, ...]
    as_installed: str | None = None
    hides_frames: bool = True


class FilledInByTheRank:
    """Stands for an argument that each rank process knows best."""


def call_of(item: pytest.Function) -> TestCall:
    """Return what a rank process needs to run the test."""
    arguments = {}
    for name in item._fixtureinfo.argnames:  # the function's own, not those of its fixtures
        value = item.funcargs[name]
        if isinstance(value, FilledInByTheRank):
            continue
        if isinstance(value, pytest.MonkeyPatch):
            value = pytest.MonkeyPatch()  # each rank has its own, and not what this process has to undo
        arguments[name] = _pickled(name, value, name not in item.callspec.params)
    return TestCall(
        path=str(item.path),
        module=item.module.__name__,
        qualname=item.function.__qualname__,
        arguments=arguments,
        wants_rank=isinstance(item.funcargs.get("rank"), FilledInByTheRank) and "rank" in item._fixtureinfo.argnames,
        warning_filters=(
            *item.config.getini("filterwarnings"),
            *(item.config.getoption("pythonwarnings") or ()),
            *_marked_filters(item),
        ),
        as_installed=str(item.config.rootpath) if item.config.getini("ranks_as_installed") else None,
        hides_frames=not item.config.getoption("fulltrace"),
    )


def _pickled(name: str, value: object, is_fixture: bool) -> bytes:
    what = f"the fixture {name!r}" if is_fixture else f"the parameter {name!r}"
    if type(value).__module__.startswith("_pytest.") and not isinstance(value, _CAN_GO):
        problem = "it works in pytest's own process alone"
        hint = "Do inside the test what it is for."
    else:
        try:
            return pickle.dumps(value)
        except Exception as error:  # pickling runs the value's own code, which may raise anything
            problem = f"its value cannot be pickled: {error}"
        hint = "Make it inside the test, or pass what it is made from."
    pytest.fail(f"{what} cannot go to the rank processes: {problem}\n{hint}", pytrace=False)


def _marked_filters(item: pytest.Function) -> Iterator[str]:
    for mark in reversed(list(item.iter_markers("filterwarnings"))):
        yield from mark.args
