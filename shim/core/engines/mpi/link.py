"""The engine over MPI, and the connections of a group, through mpi4py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shim.core.engines.mpi.arithmetic import reduction_of
from shim.core.engines.mpi.communicators import Exchange, keep, open_communicator
from shim.core.engines.mpi.library import Library, library
from shim.core.engines.mpi.pending import Transfer
from shim.core.engines.network.engine import NetworkEngine
from shim.core.engines.network.link import HEADER_BYTES, FailedTransfer, Link, LinkError, Pending
from shim.core.engines.network.meeting import key_among
from shim.core.reduce_ops import ReduceOp

if TYPE_CHECKING:
    from shim.core.engines.place import Place

MOST_AT_ONCE = (1 << 31) - 1
"""Elements of a transfer: MPI counts in an int, and Open MPI 5 has no calls with longer counts."""


class MpiLink(Link):
    """A communicator of *members*, ranks of the world in the group's order; all of them make one at the same time.

    The world is ``MPI.COMM_WORLD``, in which the caller must be *world_rank* of *world_size*. *exchange* gives every member
    what each gave, in the order of *members*, and raises if one of them is gone: MPI itself would wait for it for ever.
    """

    name = "MPI"
    needs_progress = True

    def __init__(self, members: Sequence[int], world_rank: int, world_size: int, exchange: Exchange) -> None:
        self._library = library()
        self._mpi: Any = self._library.mpi
        self.rank, self.size = members.index(world_rank), len(members)
        problem = problem_of_world(self._library, world_rank, world_size)
        self._communicator = open_communicator(self._library, tuple(members), problem, exchange)
        self._handle: Any = self._communicator.handle
        self._first_tag = self._communicator.first_tag
        self._numbers = self._communicator.tags - 2  # of messages
        self._exchange_tag = self._first_tag + self._numbers  # above those of messages
        self._header_tag = self._exchange_tag + 1
        self._transfers: set[Transfer] = set()
        self._taker: Callable[[int, bytes], None] | None = None
        self._takes = threading.Lock()
        self._is_open = True
        self._library.begin_link()

    def all_gather(self, outputs: memoryview, mine: memoryview) -> Pending:
        count = len(mine)
        parts = [outputs[rank * count : (rank + 1) * count] for rank in range(self.size)]
        if len(outputs) > MOST_AT_ONCE:
            return self.all_to_all(parts, [mine] * self.size)
        is_in_place = self._address(parts[self.rank]) == self._address(mine)
        source = self._mpi.IN_PLACE if is_in_place else self._bytes(mine)
        return self._begin(len(outputs), lambda: [self._handle.Iallgather(source, self._bytes(outputs))])

    def broadcast(self, data: memoryview, root: int) -> Pending:
        return self._begin(
            len(data), lambda: [self._handle.Ibcast(self._bytes(piece), root) for piece in _pieces(data, 1)]
        )

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        """See ``Link``. MPI's own takes distances in one buffer, as 32-bit numbers; it too sends to each rank."""
        mine, tag = self.rank, self._exchange_tag

        def begin() -> Iterator[Any]:
            for step in range(1, self.size):
                source = (mine - step) % self.size
                for piece in _pieces(outputs[source], 1):
                    yield self._handle.Irecv(self._bytes(piece), source, tag)
            for step in range(1, self.size):
                target = (mine + step) % self.size
                for piece in _pieces(inputs[target], 1):
                    yield self._handle.Isend(self._bytes(piece), target, tag)

        transfer = self._begin(sum(map(len, outputs)), begin)
        if outputs[mine] is not inputs[mine]:
            outputs[mine][:] = inputs[mine]
        return transfer

    def reduces(self, dtype: str, op: ReduceOp) -> bool:
        return reduction_of(self._mpi, dtype, op, self.size) is not None

    def all_reduce(self, data: memoryview, dtype: str, op: ReduceOp) -> Pending:
        kind, operation = self._reduction(dtype, op)

        def begin() -> Iterator[Any]:
            for piece in _pieces(data, kind.Get_size()):
                yield self._handle.Iallreduce(self._mpi.IN_PLACE, [piece, kind], operation)

        return self._begin(len(data), begin)

    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        tag = self._tag(number)
        return self._begin(
            len(data), lambda: [self._handle.Isend(self._bytes(piece), peer, tag) for piece in _pieces(data, 1)]
        )

    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        tag = self._tag(number)
        return self._begin(
            len(data), lambda: [self._handle.Irecv(self._bytes(piece), peer, tag) for piece in _pieces(data, 1)]
        )

    def send_header(self, header: bytes, peer: int) -> Pending:
        return self._begin(HEADER_BYTES, lambda: [self._handle.Isend([header, self._mpi.BYTE], peer, self._header_tag)])

    def take_headers(self, taker: Callable[[int, bytes], None]) -> None:
        self._taker = taker

    def progress(self) -> None:
        if self._taker is None or not self._takes.acquire(blocking=False):
            return  # another thread takes them
        try:
            while self._is_open:
                source, header = self._next_header()
                if header is None:
                    return
                self._taker(source, header)
        finally:
            self._takes.release()

    def _next_header(self) -> tuple[int, bytes | None]:
        mpi = self._mpi
        status = mpi.Status()
        header = bytearray(HEADER_BYTES)
        try:
            message = self._handle.Improbe(mpi.ANY_SOURCE, self._header_tag, status)
            if message is None:
                return 0, None
            message.Recv([header, mpi.BYTE])
        except mpi.Exception as error:
            raise LinkError(str(error)) from error
        return status.Get_source(), bytes(header)

    def close(self, is_clean: bool) -> None:
        """See ``Link``. A communicator on which something may be under way is not used again."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            is_clean = is_clean and all(transfer.wait(0) for transfer in list(self._transfers))
        except LinkError:
            is_clean = False
        if is_clean:
            keep(self._communicator)
        else:
            self._library.abandon(self)
            for transfer in list(self._transfers):
                transfer.give_up()
        self._library.end_link()

    def _begin(self, count: int, begin: Callable[[], Any]) -> Pending:
        try:
            requests = list(begin())
        except self._mpi.Exception as error:
            return FailedTransfer(error)
        transfer = Transfer(requests, count, self._mpi.Exception, self._transfers.discard)
        self._transfers.add(transfer)
        return transfer

    def _reduction(self, dtype: str, op: ReduceOp) -> tuple[Any, Any]:
        found = reduction_of(self._mpi, dtype, op, self.size)
        if found is None:
            raise LinkError(f"{self._library.version()} does not combine {dtype} by {op.name}")
        return found

    def _tag(self, number: int) -> int:
        return self._first_tag + number % self._numbers

    def _bytes(self, data: memoryview) -> list[Any]:
        return [data, self._mpi.BYTE]

    def _address(self, data: memoryview) -> int:
        return int(self._mpi.buffer(data).address)


def _pieces(data: memoryview, width: int) -> Iterator[memoryview]:
    """Cut *data* into what MPI can count, elements of *width* bytes; one piece, if it is empty."""
    most = MOST_AT_ONCE * width
    for start in range(0, len(data) or 1, most):
        yield data[start : start + most]


def problem_of_world(mpi_library: Library, rank: int, size: int) -> str:
    """Tell why the world cannot be MPI's; nothing where it is."""
    world = mpi_library.mpi.COMM_WORLD
    mine, ranks = world.Get_rank(), world.Get_size()
    if (mine, ranks) == (rank, size):
        return ""
    if ranks == 1:
        hint = f"Start the program with mpirun -n {size}, or srun, of the same MPI ({mpi_library.version()})."
    else:
        hint = "Let the ranks be MPI's: do not set RANK, SHIM_RANK or the init function's rank to others."
    return f"it is rank {rank} of {size} in this job, and rank {mine} of {ranks} in MPI.COMM_WORLD\n{hint}"


def mpi_link(place: Place, key: str, ranks: tuple[int, ...]) -> MpiLink:
    """Connect the world ranks *ranks*, this one among them, under a *key* that only they use.

    The ranks of a group apart from the world have other numbers in MPI's world: each tells its own.
    """
    control = place.control
    assert control is not None
    mpi_world = library().mpi.COMM_WORLD
    mine, size = mpi_world.Get_rank(), mpi_world.Get_size()
    if size == 1 < len(ranks):
        raise LinkError(
            "MPI has one rank in its world\nStart the program with mpirun or srun, of the MPI that mpi4py uses."
        )

    def exchange(payload: bytes) -> Sequence[bytes]:
        return place.exchange(f"MPI {key}", payload, ranks)

    members = [int(rank) for rank in exchange(str(mine).encode())]
    return MpiLink(members, mine, size, exchange)


class MpiEngine(NetworkEngine):
    name = "mpi"

    def __init__(self, place: Place) -> None:
        super().__init__(place, lambda ranks: mpi_link(place, key_among(place, ranks), ranks))
