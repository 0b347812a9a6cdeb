"""``shim run``: start the ranks of a program, on this host or on several."""

from __future__ import annotations

import difflib
import os
import pkgutil
import re
import resource
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from shim.cli import several_hosts
from shim.errors import ArgumentError
from shim.launch.identity import MOST_RANKS, SETTABLE, launcher_variables, rank_variables
from shim.launch.processes import Rules, descriptors_needed, run_share
from shim.launch.remote_hosts import run_on_hosts
from shim.record.releases import VARIABLE, asked_releases

# What `shim trace run` has too.
Script = Annotated[str, typer.Argument(metavar="SCRIPT", help="The program.", show_default=False)]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="ARGS", help="What it is given: all after SCRIPT.", show_default=False)
]
LogDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Also write each rank's output to DIR/rank0.stdout, DIR/rank0.stderr, and so on."),
]
KeepGoing = Annotated[bool, typer.Option("--keep-going", help="If a rank fails, let the others go on.")]
MaxRestarts = Annotated[
    int, typer.Option(min=0, metavar="N", help="If a rank fails, start all ranks again, at most N times.")
]
Replace = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="If a rank fails, start it alone again, at most N times on each host: the others meet with it once more.",
    ),
]
Env = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set an environment variable of the ranks. Repeatable.")
]
Api = Annotated[
    str | None,
    typer.Option(
        metavar="RELEASE",
        help="Have the frontends follow another release than the installed one, such as torch-2.15; several with commas.",
    ),
]

_OF_MPI = ("OMPI_COMM_WORLD_", "PMIX_", "PMI_")  # how the variables begin in which an MPI tells a process its rank


def run(
    script: Script,
    ranks: Annotated[
        int,
        typer.Option(
            "-n",
            "-np",
            "--nproc-per-node",
            metavar="N",
            help="The number of ranks on each host. The names of mpirun and torchrun for this option work too.",
            show_default=False,
        ),
    ],
    arguments: Arguments = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is a module to run, as with `python -m`.")] = False,
    as_installed: Annotated[
        bool,
        typer.Option(
            "--as-installed",
            help="Run a program that imports the frameworks themselves: its imports get shim's collectives.",
        ),
    ] = False,
    log_dir: LogDir = None,
    keep_going: KeepGoing = False,
    max_restarts: MaxRestarts = 0,
    replace: Replace = 0,
    env: Env = None,
    api: Api = None,
    nnodes: several_hosts.Nnodes = 1,
    node_rank: several_hosts.NodeRank = None,
    master: several_hosts.Master = None,
    hosts: several_hosts.Hosts = None,
    ssh: several_hosts.Ssh = several_hosts.SSH,
    attached: several_hosts.Attached = False,
) -> None:
    """Run SCRIPT as N ranks of this Python, on this host or on each of several.

    Options of `shim run` come before SCRIPT; everything after SCRIPT is passed to the program.
    Each line of output starts with its rank.
    A traceback that several ranks write is shown once, without the frames of shim itself.
    SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to the ranks.
    If a rank fails, the others are ended and its traceback is shown last.
    The exit status is that of the failed rank, or 128 plus the number of the signal that killed it.
    """
    program = [script, *(arguments or ())]
    _check_size(ranks, None if hosts is not None else log_dir)
    if (keep_going, max_restarts > 0, replace > 0).count(True) > 1:
        raise typer.BadParameter("--keep-going, --max-restarts and --replace exclude each other")
    env = [*(env or []), *([f"{VARIABLE}={_checked_releases(api)}"] if api else [])]
    options = several_hosts.Options(ranks, nnodes, node_rank, master, hosts, shlex.split(ssh), attached)
    options.check(max_restarts)
    if hosts is not None:
        line = _arguments(program, module, as_installed, log_dir, keep_going, replace)
        raise typer.Exit(run_on_hosts(options.plan(line, _environment(env), keep_going)))
    if not module:
        _check_script(script)
    _make_folder(log_dir)
    through = ["-m", "shim.substitution"] if as_installed else []
    python = [sys.executable, *through, *(["-m"] if module else []), *program]
    place = options.place(_environment(env))
    rules = Rules(log_dir, keep_going=keep_going, max_restarts=max_restarts, replace=replace)
    status = run_share(python, place.share, place.run, place.endpoints, place.environment, rules, place.channel)
    raise typer.Exit(status)


def _arguments(
    program: list[str], module: bool, as_installed: bool, log_dir: Path | None, keep_going: bool, replace: int
) -> list[str]:
    """Return the options of this `shim run` that hold on each host, and the program."""
    flags = {"-m": module, "--as-installed": as_installed, "--keep-going": keep_going}
    replaced = ["--replace", str(replace)] * bool(replace)
    folder = [] if log_dir is None else ["--log-dir", str(log_dir)]
    return [*(flag for flag, is_set in flags.items() if is_set), *replaced, *folder, "--", *program]


def _check_size(ranks: int, log_dir: Path | None) -> None:
    """Refuse, before any is started, more ranks than a group can have or this process can watch."""
    if not 1 <= ranks <= MOST_RANKS:
        raise typer.BadParameter(f"-n must be at least 1 and at most {MOST_RANKS}, got {ranks}")
    needed, allowed = descriptors_needed(ranks, log_dir), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if needed > allowed != resource.RLIM_INFINITY:
        raise typer.BadParameter(
            f"-n {ranks} takes about {needed} open files, and this shell allows {allowed}; `ulimit -n {needed}` allows more"
        )


def _checked_releases(text: str) -> str:
    try:
        asked_releases(text)
    except ArgumentError as error:
        raise typer.BadParameter(str(error), param_hint="--api") from None
    return text


def _check_script(script: str) -> None:
    if Path(script).exists():
        finder = pkgutil.get_importer(script)  # of a folder or a zip file, in which Python looks for this name
        if finder is not None and finder.find_spec("__main__") is None:
            raise typer.BadParameter(f"there is no __main__.py in {script!r}")
        return
    where = "" if os.path.isabs(script) else f" in {Path.cwd()}"
    raise typer.BadParameter(f"there is no script {script!r}{where}{_hint_for(script)}")


def _hint_for(script: str) -> str:
    """Return what to write instead of *script*, which does not exist, empty where nothing suggests itself."""
    if script.startswith("-"):
        return "; options of `shim run` come before the script"
    if re.fullmatch(r"python[\d.]*", os.path.basename(script)):
        return "; give the script itself, without `python`"
    beside = map(str, Path(script).parent.glob("*.py"))
    if found := difflib.get_close_matches(script, beside, n=1):
        return f"; is it {found[0]!r}?"
    return "" if script.endswith(".py") or "/" in script else f"; `-m {script}` runs a module"


def _make_folder(log_dir: Path | None) -> None:
    if log_dir is None:
        return
    try:
        log_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"--log-dir: {error}") from None
    if not os.access(log_dir, os.W_OK | os.X_OK):
        raise typer.BadParameter(f"--log-dir: no files can be made in {log_dir}")


def _environment(settings: list[str]) -> dict[str, str]:
    """Return what the ranks' environment has besides this process's and who they are."""
    chosen = {"PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED") or "1"}
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if address and port:
        chosen |= {"MASTER_ADDR": address, "MASTER_PORT": port}
    identifying = {*rank_variables(0, 1, ""), *launcher_variables(0, 1, "", [""])} - SETTABLE
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"--env must be NAME=VALUE, got {setting!r}")
        if name in identifying or name.startswith(_OF_MPI):
            raise typer.BadParameter(f"--env cannot set {name}, which tells a rank who it is")
        chosen[name] = value
    return chosen
