"""The launchers: how each is recognised, what its options mean, how a launch is written for it, and which a port changes into which."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from shim.port.launch_lines.launch import Launch
from shim.port.plan import Left, Plan


@dataclass(frozen=True)
class Launcher:
    """One launcher. An option is named without its dashes and with ``-`` for ``_``; its meaning is a name of ``options.MEANINGS``.

    ``commands`` are its programs, ``modules`` what follows ``python -m``. ``default_ranks`` is what it starts when the line does not say.
    """

    name: str
    commands: tuple[str, ...]
    modules: tuple[str, ...]
    options: Mapping[str, str]
    flags: Mapping[str, str] = field(default_factory=dict)
    default_ranks: str = ""


LAUNCHERS = {
    "torch": Launcher(
        "torch",
        commands=("torchrun",),
        modules=("torch.distributed.run", "torch.distributed.launch"),
        options={
            "nproc-per-node": "ranks",
            "nnodes": "one",
            "node-rank": "zero",
            "max-restarts": "restarts",
            "master-addr": "address",
            "master-port": "port",
            "rdzv-backend": "nodes",
            "rdzv-endpoint": "nodes",
            "rdzv-id": "nodes",
            "rdzv-conf": "nodes",
            "log-dir": "logs",
            "redirects": "logs",
            "r": "logs",
            "tee": "logs",
            "t": "logs",
        },
        flags={"standalone": "none", "m": "module", "module": "module", "use-env": "none"},
        default_ranks="1",
    ),
    "paddle": Launcher(
        "paddle",
        commands=("fleetrun",),
        modules=("paddle.distributed.launch",),
        options={
            "nproc-per-node": "ranks",
            "devices": "devices",
            "gpus": "devices",
            "npus": "devices",
            "xpus": "devices",
            "nnodes": "one",
            "rank": "zero",
            "master": "nodes",
            "ips": "nodes",
            "host": "nodes",
            "log-dir": "logs",
        },
    ),
    "mindspore": Launcher(
        "mindspore",
        commands=("msrun",),
        modules=("mindspore.parallel.cluster.run",),
        options={
            "worker-num": "ranks",
            "local-worker-num": "local-ranks",
            "master-addr": "address",
            "master-port": "port",
            "node-rank": "zero",
            "join": "none",
            "log-dir": "logs",
            "worker-log-name": "logs",
            "tail-worker-log": "logs",
        },
        default_ranks="8",
    ),
    "mpi": Launcher(
        "mpi",
        commands=("mpirun", "mpiexec"),
        modules=(),
        options={"n": "ranks", "np": "ranks", "x": "variable", "H": "nodes", "host": "nodes", "hostfile": "nodes"},
        flags={"allow-run-as-root": "none", "oversubscribe": "none"},
    ),
    "shim": Launcher(
        "shim",
        commands=("shim run",),
        modules=("shim run",),
        options={
            "n": "ranks",
            "np": "ranks",
            "nproc-per-node": "ranks",
            "max-restarts": "restarts",
            "env": "variable",
            "log-dir": "logs",
        },
        flags={"m": "module"},
    ),
}


def written_for(target: str, launch: Launch, through_module: bool) -> list[str]:
    """Return the words with which *target*, a launcher's name, starts *launch*, up to the program. With *through_module* they follow ``python -m``.

    Raises Left for what the launcher cannot do.
    """
    if target == "shim":
        restarts = ["--max-restarts", launch.restarts] * bool(launch.restarts)
        variables = [word for variable in launch.variables for word in ("--env", variable)]
        return ["shim", "run", "-n", launch.ranks, *restarts, *variables, *["-m"] * launch.is_module]
    if launch.variables:
        raise Left("launch-option", f"{target}'s launcher sets no variables", "set them before the command")
    if target == "torch":
        start = ["torch.distributed.run" if through_module else "torchrun", "--nproc-per-node", launch.ranks]
        return [*start, *["--max-restarts", launch.restarts] * bool(launch.restarts), *["-m"] * launch.is_module]
    if launch.is_module or launch.restarts:
        what = "starts no modules" if launch.is_module else "counts no restarts of ranks on one host"
        raise Left("launch-option", f"{target}'s launcher {what}", "give it a script, without this option")
    if target == "paddle":
        start = [] if through_module else ["python", "-m"]
        return [*start, "paddle.distributed.launch", "--nproc_per_node", launch.ranks]
    command = "mindspore.parallel.cluster.run" if through_module else "msrun"
    if launch.ranks_are_expression:
        return [command, "--worker_num", launch.ranks, "--local_worker_num", launch.ranks, "--join=True"]
    return [command, f"--worker_num={launch.ranks}", f"--local_worker_num={launch.ranks}", "--join=True"]


def normal_name(option: str) -> str:
    """Return the name of *option* without its dashes, in one spelling."""
    return re.sub(r"^--?", "", option).replace("_", "-")


# A launcher is a command where it is no part of a path or a longer name, and words follow it.
_FORM = r"(?<![\w./-])(?:(?P<command>{commands})|(?P<python>[^\s`'\"|;&(!@]+)(?:[ \t]+-[uBO])*[ \t]+-m[ \t]+(?P<module>{modules}))(?=[ \t]|\\{{1,2}}[ \t]*\n)"


@dataclass(frozen=True)
class Route:
    """``target`` is the name of the launcher that the port writes; ``sources`` are those it replaces."""

    sources: tuple[Launcher, ...]
    target: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What a launcher looks like in a text."""
        commands = [re.escape(one).replace(r"\ ", r"[ \t]+") for each in self.sources for one in each.commands]
        modules = [re.escape(one).replace(r"\ ", r"[ \t]+") for each in self.sources for one in each.modules]
        return re.compile(_FORM.format(commands="|".join(commands), modules="|".join(modules) or "(?!)"))

    def launcher_of(self, written: str) -> Launcher:
        """Return the launcher whose command or module is *written*."""
        name = " ".join(written.split())
        return next(each for each in self.sources if name in each.commands or name in each.modules)


def route_of(plan: Plan) -> Route:
    """Return the route of *plan*.

    mpirun's lines stay on the way onto shim, which finds its ranks there as well; only MindSpore's own way to start ranks is replaced.
    """
    source, goal = _family(plan.source), _family(plan.target)
    if plan.onto == "shim":
        names = [source, *["mpi"] * (source == "mindspore")]
        return Route(tuple(LAUNCHERS[name] for name in names), "shim")
    names = [*[source] * (source != goal), *["mpi"] * (goal != "mindspore"), "shim"]
    return Route(tuple(LAUNCHERS[name] for name in names), goal)


def _family(api: str) -> str:
    return "paddle" if api.startswith("paddle") else api
