"""Run PyTorch's own tests of ``torch.distributed`` on the torch frontend and on the engine as a backend, and compare what comes of them with gloo."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from campaigns.torch_suite.verdicts import (
    BACKEND,
    DIFFERENCES,
    FAILED,
    FRONTEND,
    GLOO,
    LEFT_OUT,
    PASSED,
    REFUSED,
    SUITE,
    OthersMissingError,
    Verdict,
    Verdicts,
    findings,
    read,
    record_of,
    write,
)
from shim.launch.original import Original
from shim.launch.pool import Outcome, RankPool

_SIZES = (2, 4)
_PRELOADED = ("torch", SUITE, "shim.frontends.torch.distributed", "campaigns.torch_suite.rank")
_VARIABLES = {"BACKEND": "gloo", "INIT_METHOD": "file://", "WORLD_SIZE": "2"}  # which the suite reads when it is loaded
_DEADLINE = 60.0  # seconds for one test
_LOADING = 240.0  # seconds for torch, on all ranks
_HELP = f"""\
Run PyTorch's own tests of torch.distributed: on the torch frontend, and with the engine as torch's backend. The tests are those of
{SUITE}
in the installed wheel. A test that gloo passes has to pass; the classes of errors are compared, their texts are not.
The events that gloo records for torch.profiler are not looked for: the engine records none.
The exit status is 1 where a test fails that gloo passes.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what *arguments* say, print a summary, and return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m campaigns.torch_suite", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", metavar="TEST", help="the tests to run; all that gloo passes or fails")
    parser.add_argument("--ranks", nargs="+", type=int, default=_SIZES, help="the world sizes; 2 and 4")
    parser.add_argument("--record", action="store_true", help="run all on gloo, and record what it does with each test")
    parser.add_argument(
        "--ways", nargs="+", choices=(FRONTEND, BACKEND), default=(FRONTEND, BACKEND), help="how the suite is run; both"
    )
    given = parser.parse_args(arguments)
    version = importlib.metadata.version("torch").partition("+")[0]
    record = record_of(version)
    if not given.record and not record.exists():
        print(f"nothing is on record of torch {version}: python -m campaigns.torch_suite --record")
        return 1
    with Original(_PRELOADED, _VARIABLES) as original:
        if given.record:
            write(record, {size: _verdicts(size, original, None, (), GLOO) for size in _SIZES})
            print(f"recorded in {record}")
            return 0
        gloo = read(record)
        status = 0
        for way in given.ways:
            print(f"The tests of torch {version}'s torch.distributed on {way}")
            ours = {size: _verdicts(size, original, gloo[size], given.tests, way) for size in given.ranks}
            status |= summary(gloo, ours, complete=not given.tests)
    return status


def _verdicts(
    size: int, original: Original, gloo: Verdicts | None, tests: Sequence[str], way: str
) -> dict[str, Verdict]:
    """Run *tests* on *size* ranks, or all but those that are left out by what is on record of *gloo*; return how each ended."""
    begun = time.monotonic()
    verdicts = {}
    with tempfile.TemporaryDirectory() as folder, RankPool(size, original=original) as pool:
        there_are = pool.run("campaigns.torch_suite.rank:names", way, deadline=_LOADING)[0]
        if there_are.error is not None:
            raise SystemExit(there_are.error)
        if gloo is not None and (unknown := {*there_are.value, *tests}.symmetric_difference(gloo)):
            raise SystemExit(f"not on record of gloo, or not in the suite: {', '.join(sorted(unknown))}")
        print(f"{size} ranks ", end="", flush=True)
        for name in tests or there_are.value:
            if tests or gloo is None or gloo[name].ended != LEFT_OUT:
                verdicts[name] = _verdict(pool, name, Path(folder, name), way)
                mark = {PASSED: ".", LEFT_OUT: "", REFUSED: "r"}.get(verdicts[name].ended, "F")
                print("d" if name in DIFFERENCES and mark != "." else mark, end="", flush=True)
    print(f" {len(verdicts)} tests in {time.monotonic() - begun:.0f} s", flush=True)
    return verdicts


def _verdict(pool: RankPool, name: str, folder: Path, way: str) -> Verdict:
    """Return how the test *name* ended on the ranks of *pool*: on the first that failed by itself, where one did."""
    for part in ("barrier", "test_dir"):
        (folder / part).mkdir(parents=True)
    ended = [
        _ending(outcome)
        for outcome in pool.run("campaigns.torch_suite.rank:run", name, str(folder), way, deadline=_DEADLINE)
    ]
    if any(verdict.ended == FAILED for verdict in ended):
        pool.close()  # what a failure leaves behind is not the next test's affair
    return min(ended, key=_how_telling)


def _how_telling(verdict: Verdict) -> int:
    if verdict.ended == PASSED:
        return 2
    return int(verdict.reason == OthersMissingError.__name__)


def _ending(outcome: Outcome) -> Verdict:
    if outcome.error is not None:
        return Verdict(FAILED, outcome.error.partition("\n")[0], outcome.error)
    verdict: Verdict = outcome.value
    return verdict


def summary(gloo: Mapping[int, Verdicts], ours: Mapping[int, Verdicts], complete: bool) -> int:
    """Print how many tests of each world size pass, what is left out where the runs are *complete*, and each finding; return the exit status."""
    wrong = {size: list(findings(gloo[size], of_size)) for size, of_size in ours.items()}
    for size, of_size in ours.items():
        ours_passed, gloo_passed = (
            sum(verdicts[name].ended == PASSED for name in of_size) for verdicts in (of_size, gloo[size])
        )
        print(f"{size} ranks: {ours_passed} of {len(of_size)} tests pass, of which gloo passes {gloo_passed}")
    if complete:
        _tell_reasons(gloo, ours)
    for size, findings_of_size in wrong.items():
        for finding in findings_of_size:
            print(f"{size} ranks: {finding}")
            print(textwrap.indent(ours[size][finding.partition(":")[0]].trace, "    "))
    failed = sum(map(len, wrong.values()))
    print(
        f"{failed} test(s) failed" if failed else "every test that gloo passes here passes, but for those that cannot"
    )
    return 1 if failed else 0


def _tell_reasons(gloo: Mapping[int, Verdicts], ours: Mapping[int, Verdicts]) -> None:
    """Print each test that is left out, below its reason and the world sizes that it holds for."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, sizes in _left_out(gloo, ours).items():
        by_reason: dict[str, list[int]] = {}
        for size, reason in sizes.items():
            by_reason.setdefault(reason, []).append(size)
        for reason, of_reason in by_reason.items():
            reasons.setdefault((reason, " and ".join(map(str, of_reason))), []).append(name)
    print("left out:")
    for (reason, told_sizes), tests in reasons.items():
        print(f"  {reason} ({told_sizes} ranks, {len(tests)} test{'s' * (len(tests) > 1)})")
        print(textwrap.fill(", ".join(tests), 120, initial_indent="    ", subsequent_indent="    "))


def _left_out(gloo: Mapping[int, Verdicts], ours: Mapping[int, Verdicts]) -> dict[str, dict[int, str]]:
    """Return why each test is left out, by its name and world size: by torch itself, or as it cannot pass here."""
    found: dict[str, dict[int, str]] = {}
    for size in ours:
        for name, reason in _reasons(gloo[size], ours[size]):
            found.setdefault(name, {})[size] = reason
    return found


def _reasons(gloo: Verdicts, ours: Verdicts) -> Iterator[tuple[str, str]]:
    for name, verdict in gloo.items():
        if verdict.ended == LEFT_OUT:
            yield name, f"torch says: {verdict.reason}"
        elif name in DIFFERENCES and ours[name].ended != PASSED:
            yield name, DIFFERENCES[name]


if __name__ == "__main__":
    sys.exit(main())
