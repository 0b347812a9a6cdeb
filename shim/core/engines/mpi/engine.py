"""The engine over MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shim.core.engines.exchanges import exchange_at
from shim.core.engines.mpi.library import library
from shim.core.engines.mpi.link import MpiLink
from shim.core.engines.network.connecting import connected
from shim.core.engines.network.engine import NetworkEngine
from shim.core.engines.network.link import LinkError

if TYPE_CHECKING:
    from shim.core.engines.place import Place


def mpi_link(place: Place, key: str, ranks: tuple[int, ...]) -> MpiLink:
    """Connect the world ranks *ranks*, this one among them, under a *key* that only they use.

    The ranks of a group apart from the world have other numbers in MPI's world: each tells its own.
    """
    control = place.control
    assert control is not None
    exchange = exchange_at(place, f"MPI {key}", ranks)
    mpi_world = library().mpi.COMM_WORLD
    mine, size = mpi_world.Get_rank(), mpi_world.Get_size()
    if size == 1 < len(ranks):
        raise LinkError(
            "MPI has one rank in its world\nStart the program with mpirun or srun, of the MPI that mpi4py uses."
        )
    members = [int(rank) for rank in exchange(str(mine).encode())]
    return MpiLink(members, mine, size, exchange)


class MpiEngine(NetworkEngine):
    """See ``NetworkEngine``."""

    name = "mpi"

    def __init__(self, place: Place) -> None:
        super().__init__(place, connected(place, lambda: mpi_link(place, place.key, place.ranks)))
