"""A rank process's side of the pytest plugin: load the test's module, run the test, leave the world."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import pickle
import sys
import time
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts  # what makes a failing assert show its values
from _pytest.config import parse_warning_filter

from shim.substitution.own_modules import substitute_below

__all__ = ["Failure", "Report", "TestCall", "load_test", "name_of", "note_outcome", "run_test"]

_OUTCOME = "_shim_outcome"  # an error's attribute
_NOT_THE_TESTS = ("shim", "_pytest", "contextlib")  # modules that an error passes through


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


@dataclass(frozen=True)
class Failure:
    """What the test raised on a rank, and when, by a clock that all processes of the machine share.

    ``outcome`` is what ``shim.testing.raises`` says of a block that failed, as "did not raise", and empty for other failures. It
    ``is_as_expected`` where the block failed for what other ranks did.
    """

    when: float  # seconds
    headline: str  # "ValueError: the message's first line (test_it.py:7)"
    place: str  # " (test_it.py:7)"
    traceback: str
    outcome: str = ""
    is_as_expected: bool = False


@dataclass(frozen=True)
class Report:
    """How the test ended on a rank: passed, failed, skipped or xfailed, and for which reason.

    Or that its module is ``loaded``, and it can begin.
    """

    ended: str
    reason: str = ""
    failure: Failure | None = None


def load_test(call: TestCall) -> Report:
    """Load the test's module on this rank, which may import a framework."""
    with _warnings_of(call):
        try:
            _module_of(call)
        except pytest.skip.Exception as skipped:
            return Report("skipped", str(skipped))
        except BaseException as error:
            return _failed(error, call.hides_frames)
    return Report("loaded")


def run_test(call: TestCall) -> Report:
    """Run the test on this rank. Its own exit or interrupt is its failure, not the end of the process."""
    with _warnings_of(call), pytest.MonkeyPatch.context() as patch:
        try:
            function = _function_of(call)
            arguments = {name: pickle.loads(value) for name, value in call.arguments.items()}
            arguments.update((name, patch) for name, it in arguments.items() if isinstance(it, pytest.MonkeyPatch))
            if call.wants_rank:
                arguments["rank"] = int(os.environ["SHIM_RANK"])
            function(**arguments)
        except pytest.skip.Exception as skipped:
            return Report("skipped", str(skipped))
        except pytest.xfail.Exception as expected:
            return Report("xfailed", str(expected))
        except BaseException as error:
            # before the world is left, by which the other ranks may fail in their turn
            return _failed(error, call.hides_frames)
        finally:
            _leave_world()
    return Report("passed")


@contextlib.contextmanager
def _warnings_of(call: TestCall) -> Iterator[None]:
    with warnings.catch_warnings():
        for entry in call.warning_filters:
            warnings.filterwarnings(*parse_warning_filter(entry, escape=False))
        yield


def _function_of(call: TestCall) -> Any:
    """Return the test function; that of a class is bound to a new object of it."""
    found: Any = _module_of(call)
    for name in call.qualname.split("."):
        found = getattr(found, name)() if isinstance(getattr(found, name), type) else getattr(found, name)
    return found


def _module_of(call: TestCall) -> types.ModuleType:
    """Load the module of a test, once, with asserts that explain themselves."""
    known = sys.modules.get(call.module)
    if known is not None and getattr(known, "__file__", None) == call.path:
        return known
    if call.as_installed is not None:
        substitute_below(Path(call.as_installed))
    package = call.module.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    source = Path(call.path).read_bytes()
    tree = ast.parse(source, filename=call.path)
    rewrite_asserts(tree, source, call.path)
    module = types.ModuleType(call.module)
    module.__file__ = call.path
    module.__package__ = package
    sys.modules[call.module] = module
    try:
        exec(compile(tree, call.path, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[call.module]
        raise
    return module


def name_of(error: BaseException) -> str:
    """Return the public name of the class of *error*."""
    return next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))


def note_outcome(failure: BaseException, outcome: str, is_as_expected: bool = False) -> None:
    """Keep on *failure* what its ``Failure`` is to say of the block that it comes from."""
    failure.__dict__[_OUTCOME] = outcome, is_as_expected


def _failed(error: BaseException, hides_frames: bool) -> Report:
    when = time.monotonic()
    first_line = _message_of(error).partition("\n")[0]
    place = _place(error)
    is_by_pytest = isinstance(error, pytest.fail.Exception)  # whose message says that it is a failure
    headline = ": ".join(filter(None, ["" if is_by_pytest else name_of(error), first_line])) + place
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and frames.tb_frame.f_globals["__name__"] == __name__:
        frames = frames.tb_next
    if hides_frames:
        frames = _unhidden(error, frames)
        for cause in _causes_of(error):
            cause.__traceback__ = _unhidden(cause, cause.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, frames))
    outcome, is_as_expected = error.__dict__.get(_OUTCOME, ("", False))
    return Report("failed", first_line, Failure(when, headline, place, text, outcome, is_as_expected))


def _unhidden(error: BaseException, frames: TracebackType | None) -> TracebackType | None:
    """Return *frames* of *error* without those that ask pytest to hide them, or all where none is left."""
    if frames is None:
        return None
    raised = pytest.ExceptionInfo.from_exc_info((type(error), error, frames))
    kept: TracebackType | None = None
    for entry in reversed(raised.traceback):
        if not entry.ishidden(raised):
            frame = entry._rawentry
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept or frames


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # of a class of the test's own
        return f"<its __str__ raised {name_of(failure)}>"


def _causes_of(error: BaseException) -> list[BaseException]:
    """Return the errors that Python shows above *error*."""
    causes: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and all(one is not cause for cause in causes):
        causes.append(one)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return causes[1:]


def _place(error: BaseException) -> str:
    """Return, in parentheses, the last line on the way to *error* that is of the test or of what it tests."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _NOT_THE_TESTS and "site-packages" not in file:
            place = f" ({os.path.basename(file)}:{line})"
    return place


def _leave_world() -> None:
    """Close what the test left open, where it used this project at all."""
    groups = sys.modules.get("shim.core.groups")
    if groups is not None:
        groups.close_world()
