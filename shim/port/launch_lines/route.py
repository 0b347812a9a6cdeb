"""Which launchers' lines a port changes, and into which launcher's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from shim.port.launch_lines.launchers import LAUNCHERS, Launcher
from shim.port.plan import Plan

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
