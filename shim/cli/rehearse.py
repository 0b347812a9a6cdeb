"""``shim rehearse``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shim.cli.run import Arguments, Script

if TYPE_CHECKING:
    from shim.rehearsal.clusters import Cluster
    from shim.rehearsal.preparing import Plan
    from shim.rehearsal.report import Findings


def rehearse(
    script: Script,
    ranks: Annotated[
        int, typer.Option("-n", "-np", metavar="N", min=1, help="The number of ranks of the world.", show_default=False)
    ],
    arguments: Arguments = None,
    some: Annotated[
        str, typer.Option("--ranks", metavar="RANKS", help="Run only these ranks, as in 0-15,1023. All by default.")
    ] = "",
    per_host: Annotated[
        int | None,
        typer.Option("--nproc-per-node", metavar="N", min=1, help="How many ranks a host would have. All by default."),
    ] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is a module to run, as with `python -m`.")] = False,
    as_installed: Annotated[
        bool,
        typer.Option(
            "--as-installed",
            help="Rehearse a program that imports the frameworks themselves: its imports get shim's collectives.",
        ),
    ] = False,
    no_memory: Annotated[
        bool,
        typer.Option(
            "--no-memory",
            help="Give torch's large tensors, and those on cuda devices, a shape and no elements: any model fits.",
        ),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="DIR", help="Keep the recordings, which `shim trace` reads, and what each rank printed."
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="End a rank that takes longer.")] = 300.0,
    values: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Answer with the values of a job's recording in DIR, where it has them."),
    ] = None,
    most_passes: Annotated[
        int,
        typer.Option(
            "--passes",
            metavar="N",
            min=1,
            help="The most passes; each answers with what ranks passed in the one before.",
        ),
    ] = 30,
    costs: Annotated[
        bool, typer.Option("--costs", help="Show what a step moves, by operation, inside hosts and between them.")
    ] = False,
    cluster: Annotated[
        str,
        typer.Option(metavar="HxR", help="Show costs, and how long they take on H hosts of R ranks, such as 128x8."),
    ] = "",
    inside: Annotated[
        str, typer.Option(metavar="RATE,LATENCY", help="Each rank's link to others of its host, in one direction.")
    ] = "400GB/s,5us",
    across: Annotated[
        str, typer.Option(metavar="RATE,LATENCY", help="Each rank's link to other hosts, in one direction.")
    ] = "50GB/s,15us",
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page with the times that --cluster foretells.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Run each of N ranks alone, in a world that is not there, and compare what all of them called.

    Calls are answered at once: with what the other ranks pass, where that is small, and otherwise as if every rank had passed what this one did:
    a sum is N times the input, a gather is copies, a message is zeros.
    Found are calls that differ, with each rank's line, ranks that would wait for ever, for whom and in which circle, and programs that fail.
    The exit status is 0 if no mistake was found, 1 if one was, and 2 if the command line is wrong.
    """
    from shim.rehearsal.costs import Costs
    from shim.rehearsal.preparing import Plan

    if not module and not Path(script).is_file():
        raise typer.BadParameter(f"there is no program {script!r}", param_hint="SCRIPT")
    if no_memory and find_spec("torch") is None:
        raise typer.BadParameter("it is for torch's tensors, and torch is not installed", param_hint="--no-memory")
    if page is not None and not page.resolve().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {page.parent}", param_hint="--page")
    if page is not None and not cluster:
        raise typer.BadParameter("it shows times, which need --cluster", param_hint="--page")
    described, per_host = _cluster_of(cluster, inside, across, ranks, per_host)
    wanted = _ranks_in(some, ranks)
    if folder is not None and any(folder.glob("rank*")):
        raise typer.BadParameter(f"{folder} has recordings already; name an empty or a new folder", param_hint="--to")
    if folder is not None and folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{folder} is no folder", param_hint="--to")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what is temporary is removed
    where = Path(tempfile.mkdtemp(prefix="shim-rehearsal-")) if folder is None else folder.resolve()
    program = [script, *(arguments or ())]
    plan = Plan(program, ranks, wanted, per_host, where, module, as_installed, no_memory, timeout)
    try:
        found = _in_passes(plan, values, most_passes)
        if (costs or cluster) and found.recording.ranks:
            found.costs = Costs.of(found.recording, per_host, described)
    finally:  # only here: the end of a rank, which is a copy of this process, is not to remove it
        if folder is None:
            shutil.rmtree(where, ignore_errors=True)
    sys.stderr.write("\r\x1b[K" if sys.stderr.isatty() else "")
    sys.stdout.write(json.dumps(found.as_json(), indent=1) + "\n" if as_json else found.text())
    if page is not None and found.costs is not None:
        from shim.trace.page import as_html

        page.write_text(as_html(found.costs.timed(), found.costs.between_hosts), encoding="utf-8")
    raise typer.Exit(0 if found.is_right else 1)


def _in_passes(plan: Plan, given: Path | None, most: int) -> Findings:
    """Rehearse *plan* until every rank has got what the others pass, *most* times at most, and return what is found in the last pass.

    What a recording in *given* has is known from the beginning.
    """
    from shim.errors import ArgumentError
    from shim.rehearsal.playing import play
    from shim.rehearsal.preparing import prepare
    from shim.rehearsal.report import Findings
    from shim.rehearsal.running import run_all
    from shim.rehearsal.values import Values
    from shim.trace.calls import Recording

    prepare(plan)
    known = Values(plan.values, plan.ranks)
    if given is not None:
        try:
            known.take_job(given, plan.size)
        except ArgumentError as error:
            raise typer.BadParameter(str(error), param_hint="--values") from None
    for number in range(1, most + 1):
        known.begin_pass()
        ended = run_all(plan, known, _shown_progress(len(plan.ranks), number))
        is_settled = known.is_settled()
        # A program that has failed may have asked for what others had not done yet.
        if is_settled and (number > 1 or not ended):
            break
    recording = Recording(str(plan.folder), plan.size, dict(sorted(known.ranks.items())))
    return Findings(recording, plan.ranks, ended, play(recording, plan.ranks), number, is_settled)


def _cluster_of(text: str, inside: str, across: str, size: int, per_host: int | None) -> tuple[Cluster | None, int]:
    """Return the cluster that the options describe, if they do, and how many ranks a host of it has."""
    from shim.errors import ArgumentError
    from shim.rehearsal.clusters import Cluster, Link

    if not text:
        return None, per_host or size
    hosts, _, ranks = text.partition("x")
    if not (hosts.isdigit() and ranks.isdigit() and int(hosts) * int(ranks) == size and per_host in (None, int(ranks))):
        wanted = f"{size} ranks" + (f" of which {per_host} are on a host" if per_host else "")
        raise typer.BadParameter(
            f"it must be hosts times {wanted}, such as 128x8, got {text!r}", param_hint="--cluster"
        )
    try:
        return Cluster(int(ranks), Link.of(inside), Link.of(across)), int(ranks)
    except ArgumentError as error:
        raise typer.BadParameter(str(error), param_hint="--inside, --across") from None


def _ranks_in(text: str, size: int) -> list[int]:
    """Return the ranks that *text* names, such as "0-15,1023"; all of *size* where it is empty."""
    ranks: set[int] = set()
    for part in text.split(",") if text else [f"0-{size - 1}"]:
        first, dash, last = part.strip().partition("-")
        if not (first.isdigit() and (last.isdigit() if dash else not last)):
            raise typer.BadParameter(
                f"ranks are numbers and spans such as 0-15,1023, got {text!r}", param_hint="--ranks"
            )
        span = range(int(first), int(last or first) + 1)
        if not span or span[-1] >= size:
            raise typer.BadParameter(f"ranks must be in 0..{size - 1}, got {part.strip()!r}", param_hint="--ranks")
        ranks.update(span)
    return sorted(ranks)


def _shown_progress(count: int, passes: int) -> Callable[[int], object]:
    """Return what shows on a terminal how many ranks have been rehearsed, in which pass."""

    def show(number: int) -> None:
        sys.stderr.write(f"\r\x1b[K{number} of {count} ranks rehearsed" + f", pass {passes}" * (passes > 1))
        sys.stderr.flush()

    return show if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else lambda number: None
