"""A pytest plugin that runs a test on several rank processes at once.

::

    @pytest.mark.ranks(2, 4)
    def test_sum(rank, world_size):
        dist.init_process_group()
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor)
        assert tensor.item() == sum(range(world_size))

The test becomes one for each world size, and those of one world size in a module run after each other. The rank processes
are started once for them and used again, as importing a framework takes seconds; what a test leaves of its world is closed after it,
and after a failure new processes are started. See docs/testing.md.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest

from shim.core.engines.shared_memory.inquiries import GroupFacts, ProcessFacts, ask_all
from shim.core.engines.shared_memory.waits import absent_ranks
from shim.errors import ShimError
from shim.launch.original import Original
from shim.launch.pool import Outcome, RankPool
from shim.launch.tracebacks import without_our_frames
from shim.testing_raises import raises, ranks_in_words
from shim.testing_rank import Failure, TestCall

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_pyfunc_call",
    "pytest_runtest_makereport",
    "pytest_unconfigure",
    "raises",
    "rank",
    "world_size",
]

_WORLD_SIZE = "_ranks_world_size"  # the parameter that multiplies a test by its world sizes
_IMPORTS = 240.0  # seconds for a test's module on all ranks at once, which may import a framework
_CAN_GO = (pytest.MonkeyPatch, pytest.TempPathFactory)  # those of pytest's own objects that work on a rank as well
_POOLS = pytest.StashKey[list[RankPool]]()  # one at most: each of its processes may hold a framework in memory
# The pool's job, and the name and path of each test module that its processes have loaded.
_LOADED = pytest.StashKey[set[tuple[str, str, str]]]()
# What the rank processes are copies of, where there are modules to preload.
_ORIGINAL = pytest.StashKey["Original | None"]()


class _FilledInByTheRank:
    """Stands for an argument that each rank process knows best."""


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
def rank(world_size: int) -> _FilledInByTheRank:
    """The rank of the process that the test runs on."""
    return _FilledInByTheRank()


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
    call = _call_of(pyfuncitem)
    outcomes = _load(pyfuncitem.config, pool, call)
    if not outcomes:
        outcomes = pool.run("shim.testing_rank:run_test", call, deadline=deadline)
    shown: Callable[[str], str] = str if pyfuncitem.config.getoption("fulltrace") else _without_our_frames
    failures = sorted(_failures(outcomes))
    if failures:
        pool.close()  # the next test gets new processes, whatever this one did to its own
        texts = [f"rank {failed.rank} of {size}:\n{shown(failed.text)}" for failed in failures]
        pytest.fail("\n\n".join([_headline(failures), *texts]), pytrace=False)
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
    outcomes = pool.run("shim.testing_rank:load_test", call, deadline=_IMPORTS)
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
        pools[:] = [RankPool(size, original=config.stash[_ORIGINAL], describe=_stalls)]
    return pools[0]


def _call_of(item: pytest.Function) -> TestCall:
    """Return what a rank process needs to run the test."""
    arguments = {}
    for name in item._fixtureinfo.argnames:  # the function's own, not those of its fixtures
        value = item.funcargs[name]
        if isinstance(value, _FilledInByTheRank):
            continue
        if isinstance(value, pytest.MonkeyPatch):
            value = pytest.MonkeyPatch()  # each rank has its own, and not what this process has to undo
        arguments[name] = _pickled(name, value, name not in item.callspec.params)
    return TestCall(
        path=str(item.path),
        module=item.module.__name__,
        qualname=item.function.__qualname__,
        arguments=arguments,
        wants_rank=isinstance(item.funcargs.get("rank"), _FilledInByTheRank) and "rank" in item._fixtureinfo.argnames,
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


class _Failed(NamedTuple):
    """How the test failed on a rank. What comes first is what the others follow from: a death, then the earliest error."""

    order: int
    when: float
    rank: int
    headline: str
    text: str
    raised: Failure | None = None


_DIED, _RAISED, _DIFFERS, _LATE = range(4)
_AT, _WAITS = "\nit is at ", ": has waited "  # in what is said of a late rank


def _failures(outcomes: Iterable[Outcome]) -> Iterator[_Failed]:
    """Find the ranks that failed, and those that skipped, or failed as expected, while others did not."""
    all_outcomes = list(outcomes)
    ended = {outcome.value.ended for outcome in all_outcomes if outcome.value is not None}
    for outcome in all_outcomes:
        rank, report = outcome.rank, outcome.value
        if outcome.error is not None or report is None:
            text = outcome.error or "it gave no report"
            waits = _WAITS in text  # for a rank that does not, perhaps
            headline = ": ".join(text.split("\n")[: 2 if _AT in text else 1])
            yield _Failed(_LATE if outcome.is_late else _DIED, waits, rank, headline, text)
        elif report.failure is not None:
            printed = f"\nrank {rank} printed:\n{outcome.printed}" if outcome.printed else ""
            headline = f"rank {rank}: {report.failure.headline}"
            text = report.failure.traceback + printed
            yield _Failed(_RAISED, report.failure.when, rank, headline, text, report.failure)
        elif report.ended not in ("passed", "loaded") and len(ended) > 1:
            text = f"{report.ended}, while other ranks did not: {report.reason}"
            yield _Failed(_DIFFERS, 0, rank, f"rank {rank} {text}", text)


def _headline(failures: Sequence[_Failed]) -> str:
    """Return the first failure in a line. Where other ranks had raised what that rank was to raise as well, it begins with these."""
    first = failures[0]
    others: dict[str, list[int]] = {}
    for failed in sorted(failures[1:], key=lambda failed: failed.rank):
        if failed.raised is not None and failed.raised.is_as_expected:
            others.setdefault(failed.raised.outcome, []).append(failed.rank)
    if first.raised is None or not others:
        return first.headline
    own = first.raised.outcome + first.raised.place if first.raised.outcome else f"raised {first.raised.headline}"
    return ", ".join(
        [*(f"{ranks_in_words(ranks)} {what}" for what, ranks in others.items()), f"rank {first.rank} {own}"]
    )


def _stalls(pids: Mapping[int, int]) -> dict[int, str]:
    """Return of each late rank that is in a group where it is, and whom it waits for there."""
    answers = {each.pid: each for each in ask_all()}
    known = {rank: answers[pid] for rank, pid in pids.items() if pid in answers and answers[pid].groups}
    return {
        rank: "\n".join([f"it is at {process.place}"] + [_stall(group, known.values()) for group in process.groups])
        for rank, process in known.items()
        if process.place
    }


def _stall(group: GroupFacts, processes: Iterable[ProcessFacts]) -> str:
    absent = sorted(group.ranks[rank] for rank in absent_ranks(group, processes))
    missing = f"; not arrived: {ranks_in_words(absent)}" if absent else ""
    return f"group {group.name!r}: {group.waits or 'waits for nobody'}{missing}"


def _end_as_all_did(outcomes: list[Outcome]) -> None:
    reasons = "; ".join(sorted({outcome.value.reason for outcome in outcomes}))
    if outcomes[0].value.ended == "skipped":
        pytest.skip(reasons)
    if outcomes[0].value.ended == "xfailed":
        pytest.xfail(reasons)
