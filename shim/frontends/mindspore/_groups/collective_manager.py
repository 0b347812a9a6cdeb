"""What MindSpore's own helpers ask for its groups, answered by the program's. They run on these in a substituted program."""

from __future__ import annotations

from shim.core import groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.frontends.mindspore._groups import group_names

__all__ = ["CollectiveManager", "_ExistingGroup"]

_ME = Caller("mindspore.communication")


class CollectiveManager:
    """Stands in for the object of MindSpore's C++ that its helpers ask."""

    @staticmethod
    def get_instance() -> CollectiveManager:
        """Return the one there is."""
        return _manager

    def initialized(self) -> bool:
        """Tell whether the program is in the world."""
        return group_names.is_initialized()

    def get_rank_id(self, group: str) -> int:
        """Return this process's rank in *group*."""
        return group_names.named_group(_ME, group).rank

    def get_group_size(self, group: str) -> int:
        """Return the number of ranks in *group*."""
        return group_names.named_group(_ME, group).size

    get_local_rank_id = get_rank_id  # as in mindspore.communication, all ranks count as one host's
    get_local_group_size = get_group_size

    def get_group_ranks(self, group: str) -> list[int]:
        """Return the world's ranks that are in *group*."""
        return list(group_names.named_group(_ME, group).ranks)

    def get_group_map(self) -> dict[str, list[int]]:
        """Return the ranks of each group that this process is in, by its name."""
        return {_name_of(group): list(group.ranks) for group in _groups() if group.rank >= 0}

    def get_comm_name(self, group: str) -> str:
        """Return the engine's name of *group*."""
        return group_names.named_group(_ME, group).name

    def get_world_rank_from_group_rank(self, group: str, rank: int) -> int:
        """Return the rank in the world of *rank* in *group*."""
        return group_names.world_rank(_ME, group, rank)

    def get_group_rank_from_world_rank(self, rank: int, group: str) -> int:
        """Return the rank in *group* of the world's *rank*."""
        return group_names.group_rank(_ME, group, rank)


_manager = CollectiveManager()


class _Listed(type):
    """Reads the groups that a program has made besides the world, when they are asked for."""

    @property
    def ITEMS(cls) -> dict[str, list[int]]:
        return {group.name: list(group.ranks) for group in _groups()[1:]}

    @property
    def GROUP_RANKS(cls) -> dict[str, dict[int, int]]:
        return {group.name: {rank: group.ranks.index(rank) for rank in group.ranks} for group in _groups()[1:]}


class _ExistingGroup(metaclass=_Listed):
    """The groups that exist, by their names."""


def _groups() -> list[ProcessGroup]:
    """Return the groups of the program's world, itself first; none before initialisation."""
    return groups.all_groups() if group_names.is_initialized() else []


def _name_of(group: ProcessGroup) -> str:
    return group_names.GlobalComm.WORLD_COMM_GROUP if group.name == groups.WORLD_NAME else group.name
