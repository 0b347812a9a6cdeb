"""One test of PyTorch's suite on one rank, with ``torch.distributed`` on gloo or on the engine, or with the frontend in its place."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import time
import traceback
import unittest
from pathlib import Path
from typing import Any

from torch.testing._internal import common_distributed, common_utils

from campaigns.torch_suite.verdicts import (
    FAILED,
    FRONTEND,
    GLOO,
    LEFT_OUT,
    PASSED,
    REFUSED,
    SUITE,
    OthersMissingError,
    Verdict,
)
from shim.frontends.torch._backend.serving import serve
from shim.substitution.imports import scoped_builtins

_BACKEND = "gloo"
_common: Any = common_distributed  # has names that it does not export
_PATIENCE = 30.0  # seconds for the slowest rank to come to a barrier
_PAUSE = 0.001  # seconds between two looks at who has come
_FAILED = "failed"  # the file that a rank leaves which will not come


def names(way: str) -> list[str]:
    """Return the names of the suite's tests, in the order of its file."""
    tests = vars(_suite(way).DistributedTest._DistTestBase)
    return [name for name in tests if name.startswith("test_")]


def run(name: str, folder: str, way: str) -> Verdict:
    """Run the test *name* on this rank, while the other ranks run it too. Its files lie in *folder*."""
    os.environ["TEMP_DIR"] = folder
    suite = _suite(way)
    suite.INIT_METHOD = f"file://{folder}/again"
    case = _case_class(way)(name)
    case.rank = int(os.environ["RANK"])
    case.file_name = f"{folder}/first"
    test = getattr(type(case), name)
    if getattr(test, "__unittest_skip__", False):
        return Verdict(LEFT_OUT, str(test.__unittest_skip_why__))
    try:
        _carry_out(case, name, suite.dist)
    except SystemExit as skip:  # how a rank of the suite tells its parent process that it skips
        return Verdict(LEFT_OUT, _SKIPS[int(str(skip.code))])
    except unittest.SkipTest as skip:
        return Verdict(LEFT_OUT, str(skip))
    except Exception as error:
        is_refused = type(error).__name__ == "UnsupportedError"
        Path(folder, _FAILED).touch()
        return Verdict(REFUSED if is_refused else FAILED, type(error).__name__, traceback.format_exc())
    finally:
        if suite.dist.is_initialized():
            suite.dist.destroy_process_group()
    return Verdict(PASSED)


_SKIPS = {skip.exit_code: skip.message for skip in _common.TEST_SKIPS.values()}


def _carry_out(case: Any, name: str, dist: Any) -> None:
    """Do what a rank process of the suite does for one test."""
    world_size = int(case.world_size)
    dist.init_process_group(init_method=case.init_method, backend=_BACKEND, world_size=world_size, rank=case.rank)
    case._barrier()
    common_utils.set_rng_seed()  # type: ignore[no-untyped-call]
    getattr(case, name)()
    case._barrier()


@functools.cache
def _suite(way: str) -> Any:
    """Load the suite's file, unchanged. For the frontend, its imports get that in the place of ``torch.distributed``; for the backend, gloo is the engine."""
    if int(os.environ["WORLD_SIZE"]) > 2:  # the tests of a group of ranks 1 and 2, which torch runs from 8 ranks on
        _common.skip_if_small_worldsize = lambda test: test
    spec = importlib.util.find_spec(SUITE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[SUITE] = module
    if way == FRONTEND:
        module.__dict__["__builtins__"] = scoped_builtins()
    if way != GLOO:
        serve()
    spec.loader.exec_module(module)
    if way != GLOO:
        # The suite's lists of backends that record events for torch.profiler.
        module.__dict__.update(PROFILING_SUPPORTED_BACKENDS=[], SEND_RECV_PROFILING_SUPPORTED_BACKENDS=[])
        _common.c10d = module.dist  # the barrier between two levels of TORCH_DISTRIBUTED_DEBUG
    return module


@functools.cache
def _case_class(way: str) -> Any:
    suite = _suite(way)

    class Case(suite.TestDistBackend, suite.DistributedTest._DistTestBase):  # type: ignore[misc, name-defined]
        """The suite's tests. The class of an error is compared, its text is not."""

        def _barrier(self, wait_for: int | None = None, timeout: float = _PATIENCE) -> None:
            self._barriers = getattr(self, "_barriers", 0) + 1
            size = int(self.world_size) if wait_for is None else wait_for
            _meet(Path(os.environ["TEMP_DIR"]), str(self._barriers), self.rank, size)

        def assertRaisesRegex(self, kind: Any, pattern: Any, *arguments: Any, **keywords: Any) -> Any:
            return self.assertRaises(kind, *arguments, **keywords)  # noqa: PT027  # the tests are unittest's

    return Case


def _meet(folder: Path, name: str, rank: int, size: int) -> None:
    """Return when *size* ranks have come to the barrier *name* in *folder*. The suite's own looks only every 0.1 s."""
    place = folder / "barriers" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / str(rank)).touch()
    end = time.monotonic() + _PATIENCE
    while (come := len(os.listdir(place))) < size:
        if (folder / _FAILED).exists() or time.monotonic() > end:
            raise OthersMissingError(f"{come} of {size} ranks have come to a barrier of the test")
        time.sleep(_PAUSE)
