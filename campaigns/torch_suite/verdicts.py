"""How the tests of PyTorch's suite end: what is on record of gloo, and what is a finding beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SUITE = "torch.testing._internal.distributed.distributed_test"
GLOO, FRONTEND, BACKEND = "gloo", "the torch frontend", "the engine as torch's backend"  # the ways to run the suite
PASSED, FAILED, REFUSED, LEFT_OUT = "passed", "failed", "refused", "left out"


class Verdict(NamedTuple):
    """How a test ended on a rank. *reason* is the class of the error, or why torch leaves the test out here."""

    ended: str
    reason: str = ""
    trace: str = ""


class OthersMissingError(RuntimeError):
    """Another rank has failed, or did not come."""


Verdicts = Mapping[str, Verdict]  # by the name of the test
_FOLDER = Path(__file__).parent / "recorded"

# Tests that gloo passes, and that cannot pass here: why.
DIFFERENCES = {"test_ddp_logging_data_cpu": "DistributedDataParallel logs the name of the backend, which is shim"}
_OF_DIFFERENCE = Verdict(FAILED, "AssertionError")  # how such a test ends


def record_of(version: str) -> Path:
    """Return the file with what gloo of torch *version* does."""
    return _FOLDER / f"torch-{version}.json"


def read(path: Path) -> dict[int, Verdicts]:
    """Return gloo's verdicts by world size."""
    found: dict[int, Verdicts] = {}
    for size, endings in json.loads(path.read_text(encoding="utf-8")).items():
        found[int(size)] = {
            name: Verdict(ended, reason)
            for ended, reasons in endings.items()
            for reason, names in reasons.items()
            for name in names
        }
    return found


def write(path: Path, verdicts: Mapping[int, Verdicts]) -> None:
    """Write gloo's *verdicts* by world size, the names of the tests together that ended in the same way."""
    sizes: dict[int, dict[str, dict[str, list[str]]]] = {}
    for size, of_size in verdicts.items():
        endings = sizes.setdefault(size, {})
        for name, verdict in sorted(of_size.items()):
            endings.setdefault(verdict.ended, {}).setdefault(verdict.reason, []).append(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(sizes, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def findings(gloo: Verdicts, ours: Verdicts) -> Iterator[str]:
    """Yield what is wrong with *ours*: tests that gloo passes and the engine does not, and differences that are none."""
    for name, verdict in ours.items():
        if name in DIFFERENCES:
            if verdict[:2] != _OF_DIFFERENCE[:2]:
                yield f"{name}: listed as different, and {verdict.ended} {verdict.reason}".rstrip()
        elif gloo[name].ended == PASSED and verdict.ended != PASSED:
            yield f"{name}: gloo passes it, here it {_told(verdict)}"


def _told(verdict: Verdict) -> str:
    return {
        FAILED: f"fails with {verdict.reason}",
        REFUSED: f"is refused with {verdict.reason}",
        LEFT_OUT: f"is left out: {verdict.reason}",
    }[verdict.ended]
