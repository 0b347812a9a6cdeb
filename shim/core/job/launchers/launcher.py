"""What a launcher is, and what several of them tell in the same way."""

from __future__ import annotations

from dataclasses import dataclass

from shim.core.job.hosts import joined, several_may_meet_at
from shim.core.job.variables import Variables, checked_port
from shim.errors import StateError


@dataclass(frozen=True)
class JobName:
    """What a job's ranks call it. ``is_unique`` where no other job on the host can have the name, as another can use the same port."""

    text: str
    is_unique: bool


class Launcher:
    """A way of starting ranks, known by the variables in which it tells a process who it is.

    Any of ``signs`` in the environment shows that it was used. ``rank`` and ``size`` are the variables that hold those,
    the first that is set counts. ``local_rank`` and ``local_size`` may hold its number among those of its host, and how many these
    are. A lower ``level`` is an inner launcher.
    """

    name: str
    level: int
    signs: tuple[str, ...]
    rank: tuple[str, ...]
    size: tuple[str, ...]
    local_rank = "LOCAL_RANK"
    local_size = "LOCAL_WORLD_SIZE"

    def was_used(self, variables: Variables) -> bool:
        return variables.first(self.signs) is not None and not self.is_repeated(variables)

    def is_repeated(self, variables: Variables) -> bool:
        """Tell whether it was `shim run` that set the signs, for programs that read them."""
        return False

    def is_for_rank(self, variables: Variables) -> bool:
        """Tell whether it started this process as a rank."""
        return True

    def number(self, variables: Variables, names: tuple[str, ...]) -> int:
        """Return this process's rank or size, whichever *names* hold. Raises StateError where none is set."""
        name = variables.first(names) or names[0]
        return variables.number(name, tuple(dict.fromkeys((*self.signs, *self.rank, *self.size))))

    def key(self, variables: Variables) -> JobName:
        """Return a name for the job, the same on all its ranks and hosts."""
        raise NotImplementedError

    def several_hosts(self, variables: Variables) -> str:
        """Return what shows that the ranks are on several hosts, or nothing."""
        raise NotImplementedError

    def address(self, variables: Variables) -> str:
        """Return where ranks of several hosts can meet, or nothing."""
        return address_in(variables, "MASTER_ADDR", "MASTER_PORT")


def address_in(variables: Variables, host: str, port: str) -> str:
    """Return the address of which *host* and *port* are the variables; nothing unless both are set."""
    texts = variables.get(host), variables.get(port)
    return joined(texts[0], texts[1]) if texts[0] and texts[1] else ""


def key_of_port(variables: Variables, name: str = "MASTER_PORT") -> JobName:
    """Return the name of a job that has none but its port; *name* says in an error what is missing."""
    port = variables.get("MASTER_PORT")
    if port is None:
        there = variables.shown(("RANK", "WORLD_SIZE"))
        raise StateError(
            f"{name} is not set, so that the ranks cannot find each other ({there})\n"
            "Set MASTER_ADDR to this host and MASTER_PORT to a number that no other job uses, or start with `shim run`."
        )
    return JobName(f"port {checked_port('MASTER_PORT', port)}", is_unique=False)


def hosts_counted_in(variables: Variables, *names: str) -> str:
    """Return what tells of several hosts where the first of *names* that is set, a number of hosts, is more than 1."""
    name = variables.first(names)
    return variables.shown((name,)) if name is not None and variables.number(name) > 1 else ""


def ranks_elsewhere(variables: Variables, local: str, size: str) -> str:
    """Return what tells of several hosts where the number of ranks on this host, *local*, is less than that of all, *size*."""
    if not variables.get(size) or not variables.get(local) or variables.number(local) >= variables.number(size):
        return ""
    return variables.shown((local, size))


def hosts_that_meet_at(name: str, variables: Variables) -> str:
    """Return what tells of several hosts where the host that the variable *name* gives is another one, or others reach it."""
    host = variables.get(name)
    return several_may_meet_at(name, host, variables.get("SHIM_SECRET")) if host else ""
