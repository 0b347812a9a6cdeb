"""A group of ranks, as every frontend's group is a view of one, and what this process knows of its world."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shim.core.engines.choosing import open_for_device
from shim.core.tensors.kinds_of_devices import name_in_torch
from shim.errors import NotMemberError, RankError, ShimError, StateError

if TYPE_CHECKING:
    from shim.core.control import Control
    from shim.core.engines.base import Engine
    from shim.core.engines.place import Choice
    from shim.errors import DeviceTensorError

_opening = threading.Lock()  # of an engine for devices, which several threads may need at once


class ProcessGroup:
    """An ordered set of ranks of the world that communicate; every frontend's group is a view of one.

    ``ranks`` are world ranks in the order of their group ranks, which ``group_ranks`` has by them; ``rank`` is the caller's group rank, -1 outside.
    ``backend`` is the string the user passed, which names no engine; ``timeout`` is in seconds.
    ``choice`` says which engine it is to have here, and why. ``engine`` serves the group while it ``is_alive``; what is asked of it then raises NotMemberError outside it, StateError once it is destroyed.
    """

    def __init__(
        self,
        name: str,
        ranks: tuple[int, ...],
        rank: int,
        engine: Engine | None,
        backend: str,
        timeout: float,
        choice: Choice | None = None,
    ) -> None:
        self.name = name
        self.ranks = ranks
        self.group_ranks = {rank: group_rank for group_rank, rank in enumerate(ranks)}
        self.rank = rank
        self.size = len(ranks)
        self.backend = backend
        self.timeout = timeout
        self.choice = choice
        self.description = ""
        self.is_alive = engine is not None
        # Kept, because an object may be unpickled after the group has been closed.
        self.seal_key = b"" if engine is None else engine.seal_key
        self.engine: Engine = absence(self._why_there_is_no_engine) if engine is None else engine
        self._of_devices: dict[str, Any] = {}  # the engines for tensors that are elsewhere, by the kind of device
        self._layer: Callable[[Any, bool], Any] | None = None

    @property
    def is_rehearsed(self) -> bool:
        """Whether its other ranks are not there."""
        return self.choice is not None and self.choice.is_rehearsal

    def label(self, group_rank: int, of_size: bool = False) -> str:
        """Name *group_rank* in a message: with its rank in the world, where that is another."""
        name = f"rank {group_rank} of {self.size}" if of_size else f"rank {group_rank}"
        there = self.ranks[group_rank] if group_rank >= 0 else group_rank
        return (
            name
            if there == group_rank
            else f"{name}, rank {there} of the world"
            if of_size
            else f"{name} (rank {there} of the world)"
        )

    def engine_for(self, error: DeviceTensorError) -> Any:
        """Return the engine that carries out the group's calls for tensors where *error* says. Raises DeviceTensorError where there is none."""
        kind = error.device[0]
        with _opening:
            if kind not in self._of_devices:
                opened = open_for_device(error, self.engine, self.rank, self.ranks, self.backend)
                opened.set_timeout(self.timeout)
                self._of_devices[kind] = opened
            engine = self._of_devices[kind]
        return engine if self._layer is None else self._layer(engine, True)

    def set_timeout(self, seconds: float) -> None:
        """Have the group's timeout be *seconds* from now on. Raises as a call of the group would where there is no engine."""
        with _opening:
            for engine in (self.engine, *self._of_devices.values()):
                engine.set_timeout(seconds)
            self.timeout = seconds

    def put_layer(self, make: Callable[[Any, bool], Any]) -> None:
        """Have every call go through the ``Layer`` that *make* makes of the engine that takes it, told whether that is one of devices.

        There is one such layer at most, until ``take_layer``. The group must be alive, and have none.
        """
        self._layer = make
        self.engine = make(self.engine, False)

    def take_layer(self) -> None:
        """Have the calls go to the engines themselves again, which costs what it did before."""
        self._layer = None
        if self.is_alive:
            layer: Any = self.engine
            self.engine = layer.under

    def engines_of_devices(self) -> dict[str, str]:
        """Return what ``shim.explain()`` tells of the engines that ``engine_for`` has made, by the kind of device."""
        return {
            name_in_torch(kind): f"engine {engine.name}, {engine.figures()}"
            for kind, engine in self._of_devices.items()
        }

    def explanation(self) -> str:
        """Return what ``shim.explain()`` tells of the group: which engine serves it and why, and which of its ranks are lost."""
        members = f"group {self.name!r} of ranks {list(self.ranks)}"
        if self.rank < 0:
            return f"{members}: no engine here, as this process is not a member"
        if self.choice is None or not self.is_alive:
            return f"{members}: no engine any more"
        figures = self.engine.figures()
        devices = "".join(f"; for tensors on {kind}: {one}" for kind, one in self.engines_of_devices().items())
        return f"{members}: engine {self.choice}, as {self.choice.reason}{'; ' * bool(figures)}{figures}{devices}{self._losses()}"

    def _losses(self) -> str:
        engine = self.engine
        endings = {rank: ending for rank in range(self.size) if (ending := engine.ending_of(rank))}
        lost = [ending for rank, ending in endings.items() if not engine.has_left(rank)]
        what = "".join(f"; {ending}" for rank, ending in endings.items() if engine.has_left(rank))
        what += f"; lost: {', '.join(lost)}" if lost else ""
        return what if engine.is_usable() else f"{what}; this group can no longer be used"

    def world_rank(self, group_rank: int) -> int:
        """Return the world rank of *group_rank*."""
        if not hasattr(group_rank, "__index__") or group_rank not in range(self.size):
            raise RankError(f"group rank must be in 0..{self.size - 1}, got {group_rank!r}")
        return self.ranks[group_rank]

    def group_rank(self, world_rank: int) -> int:
        """Return the group rank of *world_rank*."""
        try:
            return self.ranks.index(world_rank)
        except ValueError:
            raise RankError(
                f"rank {world_rank} is not in group {self.name!r}, whose ranks are {list(self.ranks)}"
            ) from None

    def _why_there_is_no_engine(self) -> ShimError:
        if self.rank < 0:
            mine = STATE.world.rank if STATE.world else "?"
            which = f"group {self.name!r}, whose ranks are {list(self.ranks)}" if self.ranks else "the given group"
            return NotMemberError(f"rank {mine} does not belong to {which}")
        return StateError(f"group {self.name!r} has been destroyed\nCreate it again before using it.")

    def _close(self, why: str = "") -> None:
        if self.is_alive:
            engine, self.is_alive = self.engine, False
            self.engine = absence(self._why_there_is_no_engine)
            try:
                while self._of_devices:
                    self._of_devices.popitem()[1].close(why)
            finally:
                engine.close(why)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.name!r} rank {self.rank} of {self.size}>"


@dataclass
class State:
    """There is one, and ``world`` alone changes it."""

    world: ProcessGroup | None = None
    token: str = ""
    process: int = 0  # the one that entered the world; a forked child has a copy of this, and no engines
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    apart: list[ProcessGroup] = field(default_factory=list)  # of no world, to be closed when the process ends
    frontends: set[str] = field(default_factory=set)
    created: int = 0  # of the last group on which all ranks agreed
    control: Control | None = None  # of the world, where its engine needs them
    hosts: tuple[int, ...] = ()  # by rank, the number of its host
    by_members: Counter[tuple[int, ...]] = field(default_factory=Counter)  # groups that these alone have made


STATE = State()


def absence(why: Callable[[], ShimError]) -> Any:
    """Return what stands in for an engine."""
    return _Absence(why)


class _Absence:
    """Raises what *why* returns, whatever is asked of it, so that a group need not look with every call whether its engine is there."""

    __slots__ = ("_why",)

    def __init__(self, why: Callable[[], ShimError]) -> None:
        self._why = why

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself asks, as in copying
            raise AttributeError(name)
        raise self._why()
