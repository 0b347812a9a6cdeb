"""``shim bench run``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from shim.bench.cases import COLLECTIVES, CROWDED_BYTES, DTYPES, MEASURED_BYTES, SIZES, Case, size_text
from shim.bench.machine import available_memory, describe, processors
from shim.bench.plan import FLOORS, OURS, PEERS, QUICK, Contender, Plan
from shim.bench.ranks.launchers import MPIS
from shim.launch.identity import MOST_RANKS

_RANKS = (2, 3, 4, 8)
_QUICK_SIZES = (8, 4 << 10, 64 << 10, 1 << 20, 16 << 20)
_ROUNDS, _QUICK_ROUNDS = 5, 3
_SECONDS, _QUICK_SECONDS = 0.5, 0.06
_OVERLAP = ("all_reduce", 2, "float32", 16 << 20)
_OF_MEMORY = 0.7  # of what is available may be taken
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}

_T = TypeVar("_T")


def run(
    collective: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help=f"Collectives, separated by commas: {','.join(COLLECTIVES)}. Default: all."),
    ] = None,
    ranks: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Numbers of ranks, separated by commas. Default: 2,3,4,8.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=f"Dtypes: {','.join(DTYPES)}. Default: float32; without --collective also the others, for reductions, on the fewest ranks.",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES", help="Bytes per rank, as in 8,4KB,16MB. Default: 8 B to 256 MB in steps of 4 or 8."
        ),
    ] = None,
    through: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=f"Frontends of shim: {','.join(one.name for one in OURS)}. Default: all whose framework is installed.",
        ),
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=f"Other libraries: {','.join(one.name for one in PEERS)}, or none. Default: all that are installed.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="About a minute: 2 ranks, five sizes, the engine and the torch frontend, gloo and Open MPI."
        ),
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help=f"How often each case is measured. Default: {_ROUNDS}.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=86_400,
            metavar="SECONDS",
            help=f"Seconds of timed calls per case and library, over all rounds. Default: {_SECONDS:g}.",
        ),
    ] = None,
    overlap: Annotated[
        bool,
        typer.Option(
            "--overlap/--no-overlap",
            help="Also measure an asynchronous all_reduce of 16 MB on 2 ranks behind a matrix product. Default: if all_reduce on 2 ranks is measured.",
            show_default=False,
        ),
    ] = True,
    openmpi: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where Open MPI is installed, if not in this environment.")
    ] = None,
    mpich: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where MPICH is installed, if not in this environment.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Leave out cases whose tensors on all ranks together are larger. Default: 2GB, or 512MB with more ranks than processors.",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result to FILE, again after each number of ranks.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw time against size into FOLDER, as PNG and SVG.")
    ] = None,
) -> None:
    """Measure collectives on this machine through shim's frontends and through other libraries, in one run.

    The libraries take short turns in a changing order, and their results are checked first.
    You see the median time of the slowest rank, and how it compares with the best other library and with the floor: the least time that copying takes.
    Run it on a machine that does nothing else. docs/performance.md says how to read the result.
    """
    from rich.console import Console

    from shim.bench.results.plots import missing_for_plots
    from shim.bench.results.plots import plot as draw
    from shim.bench.results.record import Record, file_refusal, folder_refusal, write_record
    from shim.bench.results.table import busy_lines, print_record
    from shim.bench.run import ProgressBar, ended_by_signals, measure, present

    if plot is not None and (missing := missing_for_plots()):
        raise typer.BadParameter(missing, param_hint="--plot")
    folders = {name: folder for name, folder in zip(MPIS, (openmpi, mpich), strict=True) if folder is not None}
    asked, optional = _contenders(through, peers, quick=quick)
    mpis, absent = present([*asked, *optional], folders)
    if gone := [f"{one.name}: {absent[one]}" for one in asked if one in absent]:
        raise typer.BadParameter("; ".join(gone))
    chosen_ranks = _numbers(ranks) or ((2,) if quick else _RANKS)
    chosen_collectives = _names("--collective", collective, COLLECTIVES) or COLLECTIVES
    usable, most_memory = processors(), _sizes("--memory", memory)
    if most_memory and len(most_memory) > 1:
        raise typer.BadParameter("--memory takes one size")

    def may_be_taken(ranks: int) -> int:
        most = most_memory[0] if most_memory else CROWDED_BYTES if ranks > usable else MEASURED_BYTES
        return min(most, int(available_memory() * _OF_MEMORY))

    measures_overlap = overlap and "all_reduce" in chosen_collectives and _OVERLAP[1] in chosen_ranks
    plan = Plan(
        collectives=chosen_collectives,
        ranks=chosen_ranks,
        dtypes=_names("--dtype", dtype, tuple(DTYPES)) or ("float32",),
        sizes=_sizes("--size", size) or (_QUICK_SIZES if quick else SIZES),
        contenders=list(mpis),
        rounds=rounds or (_QUICK_ROUNDS if quick else _ROUNDS),
        seconds=seconds or (_QUICK_SECONDS if quick else _SECONDS),
        processors=usable,
        memory=may_be_taken,
        overlap=Case(*_OVERLAP) if measures_overlap else None,
        computed=() if dtype or collective or quick else tuple(DTYPES)[1:],
    )
    for option, refused in (("--json", json and file_refusal(json)), ("--plot", plot and folder_refusal(plot))):
        if refused:
            raise typer.BadParameter(str(refused), param_hint=option)
    console = Console(highlight=False)
    console.print(*busy_lines(describe(), max(plan.ranks)), style="yellow")
    record, unwritten = None, ""

    def keep(measured: Record) -> None:
        nonlocal record, unwritten
        record = measured
        try:
            if json is not None:
                write_record(measured, json)
        except OSError as error:  # what has been measured is shown in any case
            unwritten = f"--json: {json} could not be written: {error}"

    with ended_by_signals(), ProgressBar(plan.weight, console) as progress:
        measure(plan, mpis, absent, progress, keep)
    assert record is not None
    print_record(record, console)
    if plot is not None:
        files = draw(record, plot)
        console.print(f"{len(files)} pictures in {plot}")
    if unwritten:
        typer.echo(unwritten, err=True)
        raise typer.Exit(1)


def _contenders(through: str | None, peers: str | None, *, quick: bool) -> tuple[list[Contender], list[Contender]]:
    """Return whom the user named, who must be there, and who is measured if there."""
    asked: list[Contender] = []
    optional: list[Contender] = list(FLOORS)
    for option, given, known in (("--through", through, OURS), ("--peers", peers, PEERS)):
        if given is None:
            optional += [one for one in known if not quick or one.name in QUICK]
        elif given != "none":
            names = _names(option, given, tuple(one.name for one in known)) or ()
            asked += [one for one in known if one.name in names]
    return asked, optional


def _names(option: str, given: str | None, known: Sequence[str]) -> tuple[str, ...] | None:
    return _each(option, given, lambda name: name if name in known else None, f"it knows {', '.join(known)}")


def _numbers(given: str | None) -> tuple[int, ...] | None:
    def number(text: str) -> int | None:
        return int(text) if len(text) < 4 and text.isdecimal() and 2 <= int(text) <= MOST_RANKS else None

    return _each("--ranks", given, number, f"it takes whole numbers from 2 to {MOST_RANKS}")


def _sizes(option: str, given: str | None) -> tuple[int, ...] | None:
    def size(text: str) -> int | None:
        found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
        return int(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS and int(found[1]) > 0 else None

    return _each(option, given, size, f"it takes bytes, such as 8, 4KB or {size_text(16 << 20).replace(' ', '')}")


def _each(option: str, given: str | None, read: Callable[[str], _T | None], known: str) -> tuple[_T, ...] | None:
    """Return what *given* lists, with commas between, or None where it is None. Raises BadParameter for what is not understood."""
    if given is None:
        return None
    texts = [text.strip() for text in given.split(",")]
    found = [read(text) for text in texts]
    unknown = [text for text, value in zip(texts, found, strict=True) if value is None]
    if unknown:
        raise typer.BadParameter(f"{option} does not know {', '.join(map(repr, unknown))}; {known}")
    return tuple(value for value in found if value is not None)
