"""A run on record: everything that tables, plots and the promises are made from, as JSON. docs/performance_notebook.md documents each field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shim.bench.planning.cases import Case
from shim.bench.results.destinations import write_whole
from shim.bench.results.figures import Figures, Overlap, Result

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
