"""A run on record: everything that tables, plots and the promises are made from, as JSON. docs/performance_notebook.md documents each field.

Results go to files and folders that are looked at before anything is measured, and written as a whole.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shim.bench.cases import Case


@dataclass(frozen=True)
class Figures:
    """Microseconds of a call on the slowest rank: median and quartiles over all samples of all rounds, and each round's median."""

    median: float
    lower_quartile: float
    upper_quartile: float
    minimum: float
    samples: int
    rounds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """What came of a case with one contender: figures, or the reason why there are none.

    ``status`` is "measured"; "cannot" where the library has no such thing or refuses it; "failed" where its result was wrong, or its ranks died or
    hung; or "skipped" where the machine has not the memory, or a smaller size took too long.
    """

    case: Case
    contender: str
    status: str
    reason: str = ""
    figures: Figures | None = None


@dataclass(frozen=True)
class Overlap:
    """An asynchronous all_reduce and a matrix product: microseconds of each alone and of both together, medians of the slowest rank.

    ``side`` is the matrices'. Where the contender cannot, ``reason`` says why and the rest is 0.
    """

    case: Case
    contender: str
    side: int = 0
    communication: float = 0.0
    product: float = 0.0
    together: float = 0.0
    samples: int = 0
    reason: str = ""

    @property
    def ratio(self) -> float:
        """Both together, against the longer one alone: 1 where the other one costs nothing, 2 where nothing overlaps."""
        return self.together / max(self.communication, self.product)


def slowest(by_rank: Sequence[Sequence[float]]) -> list[float]:
    """Return each sample's longest time over the ranks."""
    return [max(sample) for sample in zip(*by_rank, strict=True)]


def figures_of(rounds: Sequence[Sequence[float]]) -> Figures:
    """Return the figures of the slowest rank's seconds, given round by round."""
    samples = [seconds * 1e6 for one in rounds for seconds in one]
    if len(samples) == 1:
        lower = middle = upper = samples[0]
    else:
        lower, middle, upper = statistics.quantiles(samples, n=4, method="inclusive")
    medians = [statistics.median(one) * 1e6 for one in rounds if one]
    return Figures(middle, lower, upper, min(samples), len(samples), medians)


FORMAT = 1


@dataclass(frozen=True)
class ContenderRecord:
    """Who was measured. ``role`` is "ours", "peer" or "floor"; ``commands`` are by number of ranks; ``missing`` says why there was nobody."""

    name: str
    title: str
    role: str
    versions: dict[str, str] = field(default_factory=dict)
    commands: dict[str, list[str]] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True)
class Record:
    machine: dict[str, Any]
    settings: dict[str, Any]
    contenders: list[ContenderRecord]
    results: list[Result]
    overlaps: list[Overlap]

    def names(self, role: str) -> list[str]:
        """Return the contenders of *role* that were there."""
        return [one.name for one in self.contenders if one.role == role and not one.missing]


def write_record(record: Record, file: Path) -> None:
    """Write *record* to *file*, all of it or, when this fails or is interrupted, nothing."""
    written = {
        "format": FORMAT,
        "machine": record.machine,
        "settings": record.settings,
        "contenders": [vars(one) for one in record.contenders],
        "results": [_result_out(result) for result in record.results],
        "overlaps": [_overlap_out(overlap) for overlap in record.overlaps],
    }
    write_whole(file, json.dumps(written, indent=1) + "\n")


def read_record(file: Path) -> Record:
    """Read what write_record wrote. Raises ValueError for anything else."""
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file} is not JSON: {error}") from None
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise ValueError(f"{file} is not a result of `shim bench` in format {FORMAT}")
    try:
        return Record(
            read["machine"],
            read["settings"],
            [ContenderRecord(**one) for one in read["contenders"]],
            [_result_in(one) for one in read["results"]],
            [_overlap_in(one) for one in read["overlaps"]],
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a whole result of `shim bench`: {error}") from None


def _result_out(result: Result) -> dict[str, Any]:
    out = {**_case_out(result.case), "contender": result.contender, "status": result.status}
    if result.figures is None:
        return {**out, "reason": result.reason}
    figures = result.figures
    return {
        **out,
        "median_us": _rounded(figures.median),
        "lower_quartile_us": _rounded(figures.lower_quartile),
        "upper_quartile_us": _rounded(figures.upper_quartile),
        "minimum_us": _rounded(figures.minimum),
        "samples": figures.samples,
        "rounds_us": [_rounded(median) for median in figures.rounds],
    }


def _result_in(read: dict[str, Any]) -> Result:
    case, contender, status = _case_in(read), read["contender"], read["status"]
    if "median_us" not in read:
        return Result(case, contender, status, read["reason"])
    median, lower, upper, minimum = (
        float(read[name]) for name in ("median_us", "lower_quartile_us", "upper_quartile_us", "minimum_us")
    )
    rounds = [float(one) for one in read["rounds_us"]]
    return Result(case, contender, status, figures=Figures(median, lower, upper, minimum, int(read["samples"]), rounds))


def _overlap_out(overlap: Overlap) -> dict[str, Any]:
    out = {**_case_out(overlap.case), "contender": overlap.contender}
    if overlap.reason:
        return {**out, "reason": overlap.reason}
    return {
        **out,
        "side": overlap.side,
        "communication_us": _rounded(overlap.communication),
        "product_us": _rounded(overlap.product),
        "together_us": _rounded(overlap.together),
        "samples": overlap.samples,
        "ratio": _rounded(overlap.ratio),
    }


def _overlap_in(read: dict[str, Any]) -> Overlap:
    case, contender = _case_in(read), read["contender"]
    if "reason" in read:
        return Overlap(case, contender, reason=read["reason"])
    communication, product, together = (float(read[name]) for name in ("communication_us", "product_us", "together_us"))
    return Overlap(case, contender, int(read["side"]), communication, product, together, int(read["samples"]))


def _case_out(case: Case) -> dict[str, Any]:
    return {
        "collective": case.collective,
        "ranks": case.ranks,
        "dtype": case.dtype,
        "size": case.size,
        "bytes": case.bytes,
    }


def _case_in(read: dict[str, Any]) -> Case:
    return Case(str(read["collective"]), int(read["ranks"]), str(read["dtype"]), int(read["size"]))


def _rounded(microseconds: float) -> float:
    return round(microseconds, 4)


def file_refusal(file: Path) -> str | None:
    """Return why *file* cannot be written, or None."""
    if file.is_dir():
        return f"{file} is a folder"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    try:
        if _is_special(file):
            file.open("a").close()
        else:
            _try(file.resolve().parent)
    except OSError as error:
        return f"{file} cannot be written: {error.strerror}"
    return None


def folder_refusal(folder: Path) -> str | None:
    """Return why nothing can be written into *folder*, which is made where there is none, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _try(folder)
    except OSError as error:
        return f"nothing can be written into {folder}: {error.strerror}"
    return None


def write_whole(file: Path, text: str) -> None:
    """Write *text* to *file*: all of it, or nothing where that fails or is interrupted. A link stays one."""
    if _is_special(file):
        file.write_text(text, encoding="utf-8")
        return
    target = file.resolve()
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _try(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass


def _is_special(file: Path) -> bool:
    return file.exists() and not file.is_file()  # such as a pipe
