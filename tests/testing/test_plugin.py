"""The pytest plugin, on small suites of its own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

HEADER = "import os, time, warnings\nimport pytest\n"


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(HEADER + tests)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "shim.testing", *options)


def ranks_of(pytester: pytest.Pytester) -> list[str]:
    """Return the rank processes that were started from the suite's folder."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "cwd").readlink() == pytester.path:
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it has ended, or belongs to somebody else
    return [command for command in found if "pool_rank" in command or "shim.launch.original" in command]


def test_runs_on_every_rank_of_every_world_size(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        @pytest.mark.ranks(2, 3)
        @pytest.mark.parametrize("x", [5, 6])
        def test_it(rank, world_size, x, tmp_path):
            (tmp_path / f"{rank} of {world_size}").touch()
            while len(os.listdir(tmp_path)) < world_size:
                time.sleep(0.01)
            assert x in (5, 6)
        """.replace("\n        ", "\n"),
        "-v",
    )
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_it*2ranks*", "*test_it*3ranks*"])


def test_a_failure_shows_each_failing_rank_and_the_values_of_its_assert(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.ranks(3)
def test_it(rank):
    print("printed by", rank)
    assert ["rank", rank] == ["rank", 1]
""",
    )
    result.assert_outcomes(failed=1)
    for rank in (0, 2):
        result.stdout.fnmatch_lines([f"rank {rank} of 3:", f"*'rank', {rank}*", f"printed by {rank}"])
    result.stdout.no_fnmatch_line("rank 1 of 3:")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("os.kill(os.getpid(), 9)", "*rank 1 died: killed by SIGKILL*"),
        ("os._exit(7)", "*rank 1 died: its process exited with status 7*"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("pytest.skip('not here')", "skipped, while other ranks did not: not here"),
        ("warnings.warn('careful')", "UserWarning: careful"),
    ],
)
def test_what_goes_wrong_on_one_rank_fails_the_test(pytester: pytest.Pytester, body: str, told: str) -> None:
    pytester.makeini("[pytest]\nfilterwarnings = error")  # of the plugin's own install, editable or not, too
    result = run(
        pytester,
        f"""
@pytest.mark.ranks(2)
def test_it(rank):
    if rank == 1:
        {body}

@pytest.mark.ranks(2)
def test_next():
    pass
""",
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["rank 1 of 2:", told])


def test_what_is_preloaded_is_imported_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(slow="import os; importer = os.getpid()")
    pytester.makeini("[pytest]\nranks_preload = colorsys slow\npythonpath = .")
    result = run(
        pytester,
        """
@pytest.mark.ranks(1, 2, 3)
def test_it(rank, world_size):
    import slow, sys
    assert "colorsys" in sys.modules
    assert slow.importer == os.getppid()
    assert os.environ["SHIM_RANK"] == str(rank)
    assert rank or world_size != 2

@pytest.mark.ranks(3)
def test_next():
    import slow
    assert slow.importer == os.getppid()
""",
    )
    result.assert_outcomes(failed=1, passed=3)
    assert not ranks_of(pytester)


def test_a_module_that_cannot_be_preloaded_is_told(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nranks_preload = no_such_module")
    result = run(pytester, "@pytest.mark.ranks(1)\ndef test_it():\n    pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*imports no_such_module*", "*No module named 'no_such_module'*"])


def test_our_frames_are_left_out_of_our_errors(pytester: pytest.Pytester) -> None:
    tests = """
import shim.frontends.torch.distributed as dist

def test_here():
    dist.all_reduce([1])

@pytest.mark.ranks(1)
def test_on_a_rank():
    dist.all_reduce([2])
"""
    shown = run(pytester, tests, "--tb=short")
    shown.assert_outcomes(failed=2)
    shown.stdout.fnmatch_lines(["*dist.all_reduce([[]1])", "E   shim.errors.StateError: *", "*dist.all_reduce([[]2])"])
    assert "_reductions.py" not in shown.stdout.str()
    whole = run(pytester, tests, "--tb=short", "--full-trace").stdout.str()
    assert whole.count("_reductions.py") >= 2


def test_a_late_rank_is_ended_and_its_stack_shown(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.ranks(2, deadline=3)
def test_it(rank):
    if rank == 0:
        wait_for_ever()

def wait_for_ever():
    time.sleep(60)
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["rank 0 of 2:", "*had not answered after 3 s*", "*in wait_for_ever"])
    assert not ranks_of(pytester)


def test_processes_are_reused_and_the_world_is_left_between_tests(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
from pathlib import Path
import shim.frontends.torch.distributed as dist

@pytest.mark.ranks(2)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_it(rank, turn):
    note = Path(f"pid-{rank}")
    assert not note.exists() or note.read_text() == str(os.getpid())
    note.write_text(str(os.getpid()))
    assert not dist.is_initialized()
    dist.init_process_group()
    dist.barrier()
""",
    )
    result.assert_outcomes(passed=3)


def test_each_rank_undoes_what_it_patched(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.ranks(2)
@pytest.mark.parametrize("turn", [1, 2])
def test_it(rank, turn, monkeypatch):
    assert os.environ.get("PATCHED") is None
    monkeypatch.setenv("PATCHED", str(rank))
    assert os.environ["PATCHED"] == str(rank)
""",
    )
    result.assert_outcomes(passed=2)


def test_methods_skips_and_values(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.fixture
def number():
    return 42

@pytest.fixture
def function():
    return lambda: 42

@pytest.mark.ranks(2)
class TestMarked:
    def test_method(self, world_size, number):
        assert (world_size, number) == (2, 42)

@pytest.mark.ranks(2)
def test_skipped():
    pytest.skip("none of us")

@pytest.mark.ranks(2)
def test_expected():
    pytest.xfail("known")

@pytest.mark.ranks(2)
def test_unpicklable(function):
    pass
""",
        "-rs",
    )
    result.assert_outcomes(passed=1, skipped=1, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        ["the fixture 'function' cannot go to the rank processes: its value cannot be pickled*", "*none of us*"]
    )


@pytest.mark.parametrize("sizes", ["", "0", "'two'"])
def test_world_sizes_must_be_numbers(pytester: pytest.Pytester, sizes: str) -> None:
    result = run(pytester, f"@pytest.mark.ranks({sizes})\ndef test_it(): pass\n")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*pytest.mark.ranks takes world sizes of at least 1*"])


@pytest.mark.parametrize(
    ("keyword", "told"),
    [
        ("dead_line=0.01", "test_it: pytest.mark.ranks has no keyword 'dead_line', only deadline"),
        ("deadline=0", "test_it: the deadline of pytest.mark.ranks is in seconds, above 0, got 0"),
        ("deadline='2'", "test_it: the deadline of pytest.mark.ranks is in seconds, above 0, got '2'"),
    ],
)
def test_keywords_must_be_known_and_a_deadline_be_one(pytester: pytest.Pytester, keyword: str, told: str) -> None:
    result = run(pytester, f"@pytest.mark.ranks(1, {keyword})\ndef test_it(): pass\n", "--collect-only")
    assert result.ret != 0
    result.stdout.fnmatch_lines([f"*{told}*"])


ORDERED = """
import pytest

def test_first(): pass

@pytest.mark.ranks(2, 1)
def test_it(): pass

def test_between(): pass

class TestMethods:
    @pytest.mark.ranks(2)
    def test_two(self): pass

    @pytest.mark.ranks(1)
    def test_one(self): pass

@pytest.mark.ranks(1)
def test_last(): pass
"""


@pytest.mark.parametrize(
    ("across", "order"),
    [
        (False, ["first", "it[1ranks]", "last[1ranks]", "between", "one[1ranks]", "two[2ranks]", "it[2ranks]"]),
        (True, ["first", "between", "it[1ranks]", "one[1ranks]", "last[1ranks]", "it[2ranks]", "two[2ranks]"]),
    ],
)
def test_the_order_of_tests(pytester: pytest.Pytester, across: bool, order: list[str]) -> None:
    pytester.makeini(f"[pytest]\nranks_across_modules = {across}")
    pytester.makepyfile(test_a=ORDERED, test_b=ORDERED)
    result = pytester.runpytest_subprocess("--collect-only", "-q", "-p", "shim.testing")
    found = [line.replace("::TestMethods", "") for line in result.outlines if "::" in line]
    assert sorted(found) == sorted(f"test_{module}.py::test_{name}" for module in "ab" for name in order)
    if across:
        assert [name.partition("::test_")[2] for name in found if name.startswith("test_a")] == order
        assert [name.count("ranks") for name in found] == [0] * 4 + [1] * 10
        assert [name for name in found if "2ranks" in name] == found[-4:]
    else:
        assert found == [f"test_{module}.py::test_{name}" for module in "ab" for name in order]


@pytest.mark.ranks(2)
def test_the_project_uses_it_itself(rank: int, world_size: int) -> None:
    import shim.frontends.torch.distributed as dist

    dist.init_process_group()
    assert (dist.get_rank(), dist.get_world_size()) == (rank, world_size)


LONG_TO_IMPORT = """
if "SHIM_RANK" in os.environ:
    time.sleep(1)

@pytest.mark.ranks(2, deadline=0.5)
def test_it():
    pass
"""


def test_the_imports_of_a_module_do_not_count(pytester: pytest.Pytester) -> None:
    run(pytester, LONG_TO_IMPORT).assert_outcomes(passed=1)


TOLD = """
from shim.launch.pool import RankPool

run = RankPool.run

def told(self, target, call, **keywords):
    with open("told", "a") as file:
        print(self.size, target.partition(":")[2], call.module, file=file)
    return run(self, target, call, **keywords)

RankPool.run = told
"""
SEVERAL = """
@pytest.mark.ranks(1, 2)
@pytest.mark.parametrize("number", range(4))
def test_it(number, rank, world_size):
    if number == 1 and world_size == 2:
        if rank == 0:
            os._exit(1)
        assert 0, "as wanted"
"""


def test_a_module_is_loaded_once_by_the_same_processes(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(TOLD)
    pytester.makepyfile(test_other=HEADER + SEVERAL.replace("== 2", "== 3"))
    run(pytester, SEVERAL).assert_outcomes(passed=15, failed=1)
    told = (pytester.path / "told").read_text().splitlines()
    mine, other = (f"test_{name}" for name in ("a_module_is_loaded_once_by_the_same_processes", "other"))
    assert told == [
        *[f"1 load_test {mine}", *[f"1 run_test {mine}"] * 4],
        *[f"2 load_test {mine}", *[f"2 run_test {mine}"] * 2],
        *[f"2 load_test {mine}", *[f"2 run_test {mine}"] * 2],  # by new ones, as one has died
        *[f"1 load_test {other}", *[f"1 run_test {other}"] * 4],
        *[f"2 load_test {other}", *[f"2 run_test {other}"] * 4],
    ]


SKIPPED_THERE = """
if "SHIM_RANK" in os.environ:
    pytest.skip("not on a rank", allow_module_level=True)

@pytest.mark.ranks(2)
@pytest.mark.parametrize("number", range(3))
def test_it(number):
    assert 0
"""


def test_a_module_that_the_ranks_skip_skips_each_of_its_tests(pytester: pytest.Pytester) -> None:
    result = run(pytester, SKIPPED_THERE, "-rs")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["*not on a rank*"])


def test_an_error_may_be_its_own_cause(pytester: pytest.Pytester) -> None:
    body = """
        def test():
            try:
                1 / 0
            except ZeroDivisionError as error:
                raise error from error
        """
    run(pytester, textwrap.dedent(body)).assert_outcomes(failed=1)
