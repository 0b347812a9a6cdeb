"""A rank process's side of the pytest plugin: load the test's module, run the test, leave the world."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts  # what makes a failing assert show its values
from _pytest.config import parse_warning_filter

from shim.substitution.own_modules import substitute_below
from shim.testing.call import TestCall
from shim.testing.report import Report, failed


def load_test(call: TestCall) -> Report:
    """Load the test's module on this rank, which may import a framework."""
    with _warnings_of(call):
        try:
            _module_of(call)
        except pytest.skip.Exception as skipped:
            return Report("skipped", str(skipped))
        except BaseException as error:
            return failed(error, call.hides_frames)
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
            return failed(error, call.hides_frames)
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


def _leave_world() -> None:
    """Close what the test left open, where it used this project at all."""
    groups = sys.modules.get("shim.core.groups")
    if groups is not None:
        groups.close_world()
