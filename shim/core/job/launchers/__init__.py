"""The launchers that are known, each by the variables in which it tells a process who it is.

A launcher may have been started by another one (srun starts torchrun, torchrun starts the ranks), so that a process
sees the variables of both. Those of the inner one count: a framework's launcher comes before MPI's, that before
Slurm's, and what was set by hand comes last. What this order does not decide is an error.
"""

from __future__ import annotations

from shim.core.job.launchers.launcher import Launcher
from shim.core.job.launchers.mpi import Hydra, OpenMpi
from shim.core.job.launchers.msrun import Msrun, refuse_size_alone
from shim.core.job.launchers.paddle import PaddleLaunch
from shim.core.job.launchers.shim_run import BY_HAND, ShimRun
from shim.core.job.launchers.slurm import Srun
from shim.core.job.launchers.torchrun import Torchrun
from shim.core.job.variables import Variables
from shim.errors import StateError

LAUNCHERS = (Torchrun(), PaddleLaunch(), Msrun(), OpenMpi(), Hydra(), Srun(), ShimRun(), BY_HAND)
"""In the order in which they count."""


def launcher_of(variables: Variables, rank: int | None, world_size: int | None) -> Launcher | None:
    """Return who started this process; *rank* and *world_size*, where given, need no launcher to agree with them.

    Raises StateError where two launchers contradict each other.
    """
    used = [launcher for launcher in LAUNCHERS if launcher.was_used(variables)]
    if not used:
        if rank is None and world_size is None:
            refuse_size_alone(variables)
        return None
    chosen = used[0]
    if chosen.rank != BY_HAND.rank and _has_size_one(chosen, variables) and BY_HAND.say_more_than_one_rank(variables):
        return BY_HAND  # the launcher started one process, and that started the ranks
    for other in used[1:]:
        if other.level == chosen.level or (other is BY_HAND and not BY_HAND.repeat_shim_run(variables)):
            if rank is None:
                _require_agreement(variables, chosen, chosen.rank, other, other.rank)
            if world_size is None:
                _require_agreement(variables, chosen, chosen.size, other, other.size)
    return chosen


def _has_size_one(launcher: Launcher, variables: Variables) -> bool:
    name = variables.first(launcher.size)
    return name is not None and variables.get(name) == "1"


def _require_agreement(
    variables: Variables, one: Launcher, ones: tuple[str, ...], other: Launcher, others: tuple[str, ...]
) -> None:
    mine, theirs = variables.first(ones), variables.first(others)
    if mine is None or theirs is None or variables.number(mine) == variables.number(theirs):
        return
    raise StateError(
        f"{variables.shown((mine,))}, of {one.name}, contradicts {variables.shown((theirs,))}, of {other.name}\n"
        f"Unset the variables of the one that did not start this process: {', '.join(one.signs)} or {', '.join(other.signs)}."
    )
