"""What links by MPI must do where several groups have some: the rest of the cases, see ``link_cases``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from link_cases import WORLD, _numbers, _take, done, exchanger, memory, opened

from shim.core.engines.mpi import communicators
from shim.core.engines.mpi.link import MpiLink
from shim.core.engines.network.link import HEADER_BYTES
from shim.core.reduce_ops import ReduceOp
from shim.errors import EngineError


def groups() -> None:
    """Each group has its own ranks and messages, and the members' order is the group's."""
    members = tuple(reversed(range(1, WORLD.size)))
    if WORLD.rank in members:
        part = opened(members, 1000)
        assert (part.rank, part.size) == (members.index(WORLD.rank), len(members))
        outputs = bytearray(part.size)
        done(part.all_gather(memoryview(outputs), memoryview(bytes([WORLD.rank]))))
        assert tuple(outputs) == members
        part.close(True)
    pair = (0, WORLD.size - 1)
    if WORLD.rank in pair:
        both = opened(pair, 1001)
        data = np.array([WORLD.rank + 1], np.int32)
        done(both.all_reduce(memory(data), "int32", ReduceOp.SUM))
        assert data[0] == WORLD.size + 1
        both.close(True)


def communicators_are_used_again() -> None:
    first = opened()
    handle = first._handle
    first.close(True)
    second = opened()
    assert second._handle == handle
    third = opened()
    assert third._handle != handle
    for each in (second, third):
        done(each.broadcast(memoryview(bytearray(1)), 0))
        each.close(True)


def an_earlier_groups_messages_stay_its_own() -> None:
    """A header and a message that nobody took of a group do not come to the next one on its communicator."""
    first = opened()
    peer, source = (first.rank + 1) % first.size, (first.rank - 1) % first.size
    done(first.send_header(b"1" * HEADER_BYTES, peer))
    done(first.send(memoryview(b"old1"), peer, 4))
    WORLD.Barrier()
    first.close(True)
    second = opened()
    assert second._handle == first._handle
    received = bytearray(4)
    pending = second.receive(memoryview(received), source, 4)
    done(second.send_header(b"2" * HEADER_BYTES, peer))
    done(second.send(memoryview(b"new2"), peer, 4))
    done(pending)
    assert received == b"new2"
    assert _take(second, 1) == [(source, b"2" * HEADER_BYTES)]
    second.close(True)


def groups_of_one_number_part_do_not_share() -> None:
    """Where a communicator's tags for a number are used, another communicator is taken."""
    numbers = next(_numbers)
    first = opened(number=numbers)
    first.close(True)
    second = opened(number=numbers)
    assert second._handle != first._handle
    second.close(True)


def groups_made_at_once_are_two() -> None:
    """By two threads of each rank, whose calls MPI tells apart by their tags."""
    members = tuple(range(WORLD.size))
    with ThreadPoolExecutor(2) as threads:
        for _ in range(8):
            exchanges = [exchanger(members, next(_numbers)) for _ in range(2)]
            made = list(threads.map(lambda exchange: MpiLink(members, WORLD.rank, WORLD.size, exchange), exchanges))
            for number, one in enumerate(made):
                said = np.zeros(WORLD.size, np.uint8)
                done(one.all_gather(memory(said), memoryview(bytes([number]))))
                assert list(said) == [number] * WORLD.size
            for one in made:
                one.close(True)
            communicators._kept.clear()  # so that the next ones are made anew


def many_groups() -> None:
    """More than MPICH has communicators, of which few are open; and more members than are kept."""
    for _ in range(300):
        each = opened()
        each.close(True)
    most, communicators._MOST_KEPT = communicators._MOST_KEPT, 2
    try:
        several = [opened() for _ in range(5)]
        for each in several:
            done(each.broadcast(memoryview(bytearray(1)), 0))
        WORLD.Barrier()
        for each in several:
            each.close(True)
        assert sum(map(len, communicators._kept.values())) <= max(2, len(communicators._kept))
    finally:
        communicators._MOST_KEPT = most
    last = opened()
    done(last.broadcast(memoryview(bytearray(1)), 0))
    last.close(True)


def another_world_is_refused() -> None:
    """Every rank is told, also those whose own rank is right."""
    number = next(_numbers)
    size = WORLD.size
    told_size = size + 5 if WORLD.rank == 1 else size
    with pytest.raises(EngineError, match=r"rank 1: it is rank 1 of .*MPI.COMM_WORLD\n"):
        MpiLink(tuple(range(size)), WORLD.rank, told_size, exchanger(range(size), number))


CASES = {
    case.__name__: case
    for case in (
        groups,
        communicators_are_used_again,
        an_earlier_groups_messages_stay_its_own,
        groups_of_one_number_part_do_not_share,
        groups_made_at_once_are_two,
        many_groups,
        another_world_is_refused,
    )
}
