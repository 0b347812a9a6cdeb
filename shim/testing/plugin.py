"""What pytest calls: the marker ``ranks``, its fixtures and options, and the rank processes behind them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping

import pytest

from shim.errors import ShimError
from shim.launch.original import Original
from shim.launch.output import without_our_frames
from shim.launch.pool import Outcome, RankPool
from shim.testing.call import FilledInByTheRank, TestCall, call_of
from shim.testing.failures import failed_ranks, headline_of, stalls

_WORLD_SIZE = "_ranks_world_size"  # the parameter that multiplies a test by its world sizes
_IMPORTS = 240.0  # seconds for a test's module on all ranks at once, which may import a framework
_POOLS = pytest.StashKey[list[RankPool]]()  # one at most: each of its processes may hold a framework in memory
# The pool's job, and the name and path of each test module that its processes have loaded.
_LOADED = pytest.StashKey[set[tuple[str, str, str]]]()
# What the rank processes are copies of, where there are modules to preload.
_ORIGINAL = pytest.StashKey["Original | None"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options, whose names begin with ``ranks``."""
    parser.addini("ranks_deadline", "seconds a test marked with ranks may take on its rank processes", default="60")
    parser.addini(
        "ranks_as_installed",
        "on the ranks, give the project's imports of an installed framework's collectives the frontends' instead",
        type="bool",
        default=False,
    )
    parser.addini(
        "ranks_preload",
        "modules to import once, in a process that all rank processes are copies of, in this order",
        type="args",
        default=[],
    )
    parser.addini(
        "ranks_across_modules",
        "put the tests of each world size together in the whole run, not only in each module or class",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker and make room for the pool. No process is started before a test needs it."""
    config.addinivalue_line(
        "markers",
        "ranks(*world_sizes, deadline=None): run the test on so many rank processes at once, for each world size; "
        "deadline is in seconds",
    )
    config.stash[_POOLS] = []
    config.stash[_LOADED] = set()
    modules = config.getini("ranks_preload")
    config.stash[_ORIGINAL] = Original(modules) if modules else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the rank processes."""
    for pool in config.stash.get(_POOLS, []):
        pool.close()
    original = config.stash.get(_ORIGINAL, None)
    if original is not None:
        original.close()


@pytest.fixture
def world_size(request: pytest.FixtureRequest) -> int:
    """The number of rank processes a test marked with ranks runs on."""
    callspec = getattr(request.node, "callspec", None)
    if callspec is None or _WORLD_SIZE not in callspec.params:
        raise pytest.UsageError("the fixture world_size belongs to tests marked with pytest.mark.ranks")
    return int(callspec.params[_WORLD_SIZE])


@pytest.fixture
def rank(world_size: int) -> FilledInByTheRank:
    """The rank of the process that the test runs on."""
    return FilledInByTheRank()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test marked with ranks into one for each world size."""
    mark = metafunc.definition.get_closest_marker("ranks")
    if mark is None:
        return
    sizes = mark.args
    if not sizes or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: pytest.mark.ranks takes world sizes of at least 1, got {sizes}"
        )
    _check_keywords(metafunc.definition.nodeid, mark.kwargs)
    metafunc.fixturenames.append(_WORLD_SIZE)
    metafunc.parametrize(_WORLD_SIZE, sizes, ids=[f"{size}ranks" for size in sizes])


def _check_keywords(test: str, keywords: Mapping[str, object]) -> None:
    for name, value in keywords.items():
        if name != "deadline":
            raise pytest.UsageError(f"{test}: pytest.mark.ranks has no keyword {name!r}, only deadline")
        if value is not None and not (isinstance(value, int | float) and value > 0):
            raise pytest.UsageError(f"{test}: the deadline of pytest.mark.ranks is in seconds, above 0, got {value!r}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests of each world size together, smallest first, so that its processes are started once.

    In each module or class they change places among themselves. With ``ranks_across_modules`` all tests are put in order,
    those without ranks first, and modules with several world sizes are taken apart.
    """
    if config.getini("ranks_across_modules"):
        items.sort(key=_world_size_of)
        return
    places: dict[object, list[int]] = {}
    for place, item in enumerate(items):
        if _world_size_of(item):
            places.setdefault(item.parent, []).append(place)
    for of_parent in places.values():
        in_order = sorted((items[place] for place in of_parent), key=_world_size_of)
        for place, item in zip(of_parent, in_order, strict=True):
            items[place] = item


def _world_size_of(item: pytest.Item) -> int:
    callspec = getattr(item, "callspec", None)
    return 0 if callspec is None else int(callspec.params.get(_WORLD_SIZE, 0))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    """Run a test marked with ranks on its rank processes, instead of here."""
    mark = pyfuncitem.get_closest_marker("ranks")
    if mark is None:
        return None
    size = int(str(pyfuncitem.callspec.params[_WORLD_SIZE]))
    deadline = float(mark.kwargs.get("deadline") or pyfuncitem.config.getini("ranks_deadline"))
    pool = _pool_of(pyfuncitem.config, size)
    call = call_of(pyfuncitem)
    outcomes = _load(pyfuncitem.config, pool, call)
    if not outcomes:
        outcomes = pool.run("shim.testing.rank:run_test", call, deadline=deadline)
    shown: Callable[[str], str] = str if pyfuncitem.config.getoption("fulltrace") else _without_our_frames
    failures = sorted(failed_ranks(outcomes))
    if failures:
        pool.close()  # the next test gets new processes, whatever this one did to its own
        texts = [f"rank {failed.rank} of {size}:\n{shown(failed.text)}" for failed in failures]
        pytest.fail("\n\n".join([headline_of(failures), *texts]), pytrace=False)
    _end_as_all_did(outcomes)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[object]) -> None:
    """Have pytest leave our frames out of the traceback of an error of ours, and show them in all others."""
    error: BaseException | None = None if call.excinfo is None else call.excinfo.value
    seen: set[int] = set()  # an error may be its own cause
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_globals.get("__name__", "").startswith(("shim.core.", "shim.frontends.")):
                frame.f_globals["__tracebackhide__"] = isinstance(error, ShimError)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _without_our_frames(text: str) -> str:
    return b"\n".join(without_our_frames(text.encode(errors="surrogateescape").split(b"\n"))).decode(
        errors="surrogateescape"
    )


def _load(config: pytest.Config, pool: RankPool, call: TestCall) -> list[Outcome]:
    """Have the pool's processes load the test's module, once; return the outcomes where it could not be loaded on all of them."""
    loaded = config.stash[_LOADED]
    if (pool.job, call.module, call.path) in loaded:
        return []
    outcomes = pool.run("shim.testing.rank:load_test", call, deadline=_IMPORTS)
    if any(outcome.value is None or outcome.value.ended != "loaded" for outcome in outcomes):
        return outcomes
    # What another pool had loaded went with it, and a module of this name is replaced.
    others = {one for one in loaded if one[0] == pool.job and one[1] != call.module}
    config.stash[_LOADED] = others | {(pool.job, call.module, call.path)}
    return []


def _pool_of(config: pytest.Config, size: int) -> RankPool:
    """Return the pool of *size* ranks, which takes the place of one of another size."""
    pools = config.stash[_POOLS]
    if not pools or pools[0].size != size:
        for pool in pools:
            pool.close()
        pools[:] = [RankPool(size, original=config.stash[_ORIGINAL], describe=stalls)]
    return pools[0]


def _end_as_all_did(outcomes: list[Outcome]) -> None:
    reasons = "; ".join(sorted({outcome.value.reason for outcome in outcomes}))
    if outcomes[0].value.ended == "skipped":
        pytest.skip(reasons)
    if outcomes[0].value.ended == "xfailed":
        pytest.xfail(reasons)
