"""The least that a collective has to move: bytes per rank, as copies, for tensors anywhere and for tensors in shared memory.

*Two copies*: tensors are private, so that what another rank needs goes through a ring that stays in the cache. *One copy*: tensors are in
memory that the others read. A reduction's arithmetic counts nothing, nor does waiting, but for the one cache line that has to
get from rank to rank, half its round trip. Per rank, with N ranks and S bytes as ``Case.size`` counts them:

================== ================================================== ============================
collective         two copies                                         one copy
================== ================================================== ============================
all_reduce         in and out (N-1)/N S each; of the ring: read       a slice of S/N of each rank's
                   (N-2)/N S, copy S/N; S/N in place                  tensor, in place
all_gather         in S, out (N-1) S, own S                           own S, direct (N-1) S
all_gather_unequal the same with every rank's own S                   the same
reduce_scatter     in (N-1)/N S, of the ring: read (N-1)/N S; own S/N own S/N, read (N-1)/N S
all_to_all         in and out (N-1)/N S each, own S/N                 own S/N, direct (N-1)/N S
broadcast          root: in S; the others: out S                      the others: direct (N-1)/N S;
                                                                      root: push (N-1)/N S
send_receive       one way; sender: in S; receiver: out S             each half: push, direct S/2
barrier            nothing                                            nothing
================== ================================================== ============================

all_reduce and broadcast work in place, the others write an output. All ranks do their part at once, as they would in the collective; where
one has all the data and memory is shared, it copies too: a slice of S/N to each of the others, and half of a message. ``native/floor/floor.cpp``
does the copying.
"""

from __future__ import annotations

from typing import NamedTuple

from shim.bench.cases import DTYPES, Case

ONE_COPY, TWO_COPIES = "floor-one-copy", "floor-two-copies"


class Movement(NamedTuple):
    """Bytes that one rank moves in one call, by kind, and where they lie if not from the beginning on.

    No byte of a tensor stands for two that a collective needs: the second time it would come from the cache.
    """

    into_ring: int = 0  # from its own tensor into its ring: "in"
    out_of_ring: int = 0  # from the others' rings to its output: "out"
    own: int = 0  # from its own tensor to its output
    direct: int = 0  # from the others' tensors to its output
    read: int = 0  # of the others' tensors, not stored
    fold: int = 0  # of the others' rings, not stored
    cached: int = 0  # from the others' rings into its own
    update: int = 0  # of its own tensor, loaded and stored in place
    push: int = 0  # from its own tensor to where the others write theirs, as much to each
    slices: int = 0  # of all ranks' tensors, a slice of each, loaded and stored in place
    own_at: int = 0  # where in its own tensor the bytes of `own` or `update` begin
    direct_at: int = 0  # where in each of the others' tensors those of `direct` or `read` begin
    push_at: int = 0  # where in its own tensor, and in what each of the others writes, those of `push` begin

    @property
    def source(self) -> int:
        """Bytes of its own tensor that are needed, but for those that it pushes."""
        return max(self.into_ring, self.own_at + max(self.own, self.update), self.slices)

    @property
    def output(self) -> int:
        """Bytes written to outputs, its own and others'."""
        return self.out_of_ring + self.own + self.direct + self.update + self.push + self.slices

    @property
    def shared(self) -> int:
        """Bytes of its peers' tensors in shared memory."""
        return self.direct + self.read

    @property
    def moved(self) -> int:
        """Bytes of all kinds together."""
        return sum(self[:-3])


def movement_of(case: Case, kind: str, rank: int) -> Movement:
    """Return what *rank* must move in *case* with ONE_COPY or TWO_COPIES."""
    ranks, size = case.ranks, DTYPES[case.dtype]
    mine, whole = case.parts[rank] * size, sum(case.parts) * size
    part, rest = case.bytes // ranks, case.bytes - case.bytes // ranks
    if case.collective == "barrier" or (case.collective == "send_receive" and rank ^ 1 >= ranks):
        return Movement()
    if case.collective in ("broadcast", "send_receive"):
        sends, sharers = (rank == 0, ranks) if case.collective == "broadcast" else (rank % 2 == 0, 2)
        if kind == ONE_COPY:
            pushed = mine // sharers
            return (
                Movement(push=pushed * (sharers - 1), push_at=mine - pushed)
                if sends
                else Movement(direct=mine - pushed)
            )
        return Movement(into_ring=mine) if sends else Movement(out_of_ring=mine)
    if case.collective in ("all_gather", "all_gather_unequal"):
        if kind == ONE_COPY:
            return Movement(own=mine, direct=whole - mine)
        return Movement(into_ring=mine, out_of_ring=whole - mine, own=mine)
    if case.collective in ("reduce_scatter", "all_to_all") and kind == ONE_COPY:
        mine, read = rank * part, case.collective == "reduce_scatter"  # each rank has the same slice of all tensors
        moved = Movement(read=rest) if read else Movement(direct=rest)
        return moved._replace(own=part, own_at=mine, direct_at=mine)
    if case.collective == "reduce_scatter":
        return Movement(into_ring=rest, fold=rest, own=part, own_at=rest)
    if case.collective == "all_to_all":
        return Movement(rest, rest, own=part, own_at=rest)
    if kind == ONE_COPY:
        return Movement(slices=case.bytes)
    return Movement(rest, rest, update=part, fold=max(0, rest - part), cached=min(part, rest), own_at=rest)


def peers_of(case: Case, rank: int) -> tuple[int, int]:
    """Return which ranks *rank* reads from: the first of them, and how many there are, going round without *rank*."""
    if case.collective == "broadcast" and rank:
        return 0, 1
    if case.collective == "send_receive" and rank ^ 1 < case.ranks:
        return rank ^ 1, 1
    return (rank + 1) % case.ranks, case.ranks - 1
