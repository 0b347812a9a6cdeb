"""The program that ``test_engines_across`` starts on hosts: ``cases_across.py LIBRARY HOST-OF-RANK...``, as in ``gloo 0 0 1 1``.

Each rank compares every value, and ends with status 1 where one is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import collectives_across
import numpy as np
from collectives_across import ME
from known_values import FAILURES, Values, expect, known

import shim
from shim.core import calls, groups, objects
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Work
from shim.errors import ArgumentError, MismatchError, ShimError

_ANY = 7  # tag


def main() -> None:
    library, hosts = sys.argv[1], [int(host) for host in sys.argv[2:]]
    world = groups.enter_world(ME, "test", timeout=30.0)
    expect("the number of ranks", world.size, len(hosts))
    _check_engine(world, hosts, library)
    collectives_across.all_collectives(world)
    for case in (
        collectives_across.uneven_parts,
        collectives_across.strided,
        collectives_across.in_place,
        collectives_across.many_at_once,
        messages,
        messages_from_anyone,
        messages_to_itself,
        mistakes,
        mistakes_in_messages,
        python_objects,
    ):
        case(world)
    subgroups(world, hosts, library)
    groups.close_world()
    for failure in FAILURES:
        sys.stdout.write(f"WRONG {failure}\n")
    sys.exit(bool(FAILURES))


def _check_engine(group: ProcessGroup, hosts: list[int], library: str) -> None:
    """See that the group is served by the engine for members on *hosts*, and that this is said."""
    count, alone = len(set(hosts)), {"gloo": "c10d", "mpi": "mpi"}[library]
    if count == 1:
        engine = "shared_memory, as all its ranks are on this host"
    elif count == len(hosts):
        engine = f"{alone}, as each of its {count} ranks is on a host of its own"
    else:
        engine = f"hierarchical over {library}, as its {len(hosts)} ranks are on {count} hosts"
    line = next(line for line in shim.explain().split("\n") if f"group {group.name!r} " in line)
    expect(f"{engine!r} in {line!r}", engine in line, True)


def messages(group: ProcessGroup) -> None:
    """Every rank sends to every other one, small and large messages under several tags, taken in another order."""
    others = [(group.rank + step) % group.size for step in range(1, group.size)]
    sizes = {1: 1, 2: 700, 3: 262_144}
    begun: list[Work] = []
    for peer in others:
        for tag, count in sizes.items():
            begun.append(calls.send(ME, group, known(group.rank, count, tag + peer), peer, tag))
            begun[-1].start()
    for peer in reversed(others):
        for tag in (3, 1, 2):
            tensor = np.zeros(sizes[tag])
            calls.receive(ME, group, tensor, peer, tag, now=tag == 1).wait()
            expect(f"message {tag} of rank {peer}", tensor, known(peer, sizes[tag], tag + group.rank))
    for work in begun:
        work.wait()


def messages_from_anyone(group: ProcessGroup) -> None:
    """Rank 0 takes a small and a large message of each rank, from whoever comes first."""
    for count in (1, 262_144):
        calls.barrier(ME, group, now=True)
        if group.rank:
            calls.send(ME, group, known(group.rank, count), 0, _ANY, now=True)
            continue
        seen = []
        for _ in range(1, group.size):
            tensor = np.zeros(count)
            seen.append(calls.received(ME, group, tensor, None, _ANY))
            expect(f"the message of rank {seen[-1]}", tensor, known(seen[-1], count))
        expect("who has sent", sorted(seen), list(range(1, group.size)))


def messages_to_itself(group: ProcessGroup) -> None:
    for count in (1, 262_144):
        tensor = np.zeros(count)
        work = calls.send(ME, group, known(group.rank, count), group.rank)
        work.start()
        calls.receive(ME, group, tensor, group.rank, now=True)
        work.wait()
        expect(f"what rank {group.rank} has sent to itself", tensor, known(group.rank, count))


def mistakes(group: ProcessGroup) -> None:
    """One rank's call differs, each rank's once: all are told, with every rank's call, nothing is written, and the group goes on."""
    for culprit in range(group.size):
        for count in (1, 70_000):
            tensor = known(group.rank, count + 1)
            _make_mistakes(group, tensor, count, culprit)
            calls.all_reduce(ME, group, tensor, tensor, ReduceOp.MAX, now=True)
            expect("the next all_reduce", tensor, np.max([known(one, count + 1) for one in range(group.size)], axis=0))


def _make_mistakes(group: ProcessGroup, tensor: Values, count: int, culprit: int) -> None:
    is_mine, before = group.rank == culprit, tensor.copy()
    part = tensor[: count + is_mine]
    told = _raised(lambda: calls.all_reduce(ME, group, part, part, ReduceOp.SUM))
    _expect_table(group, told, f"all_reduce(float64 [{count + 1}], SUM)", culprit)

    told = _raised(lambda: calls.broadcast(ME, group, tensor, int(is_mine)))
    _expect_table(group, told, "root 1", culprit)

    output = tensor[:count] if is_mine else tensor
    told = _raised(lambda: calls.all_reduce(ME, group, output, before, ReduceOp.SUM))
    if is_mine:
        expect("the culprit's own error", type(told), ArgumentError)
    else:
        _expect_table(group, told, "refused", culprit)
    expect("what was not to be written", tensor, before)


def _raised(call: Callable[[], Work]) -> ShimError | None:
    try:
        call().wait()
    except ShimError as error:
        return error
    return None


def _expect_table(group: ProcessGroup, told: ShimError | None, what: str, culprit: int) -> None:
    """See that this is a MismatchError whose table has a row for each rank, and *what* in the culprit's."""
    expect("the class of the error", type(told), MismatchError)
    rows = [line for line in str(told).split("\n") if line.startswith("  rank ")]
    expect(
        "the ranks in the table",
        [row.split(":")[0] for row in rows],
        [f"  {group.label(one)}" for one in range(group.size)],
    )
    if len(rows) == group.size:
        expect(f"{what!r} in the row {rows[culprit]!r}", what in rows[culprit], True)
        expect(f"the places in {rows}", ["cases_across.py:" in row for row in rows], [True] * group.size)


def mistakes_in_messages(group: ProcessGroup) -> None:
    """A message of another length is an error on both sides where it is large; a small one is gone, as its sender has gone on."""
    last = group.size - 1
    for count in (1, 70_000):
        if group.rank == 0:
            told = _raised(partial(calls.send, ME, group, np.ones(count), last))
            expect("the sender's error", type(told), MismatchError if count > 1 else type(None))
        elif group.rank == last:
            told = _raised(partial(calls.receive, ME, group, np.ones(count + 1), 0))
            expect("the receiver's error", type(told), MismatchError)
        tensor = np.ones(1)
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM, now=True)
        expect("the next all_reduce", tensor, np.full(1, float(group.size)))


def python_objects(group: ProcessGroup) -> None:
    def thing(rank: int) -> dict[str, object]:
        return {"rank": rank, "text": "x" * rank * 50_000}

    every, size, rank = [thing(one) for one in range(group.size)], group.size, group.rank
    expect("all_gather of objects", objects.all_gather(ME, group, thing(rank)), every)
    expect("gather of objects", objects.gather(ME, group, thing(rank), 1), every if rank == 1 else None)
    expect(
        "broadcast of objects", objects.broadcast(ME, group, [thing(size)] if rank == 0 else [None], 0), [thing(size)]
    )
    expect("scatter of objects", objects.scatter(ME, group, every if rank == 1 else None, 1), thing(rank))
    if rank == 0:
        objects.send(ME, group, [thing(1), thing(2)], size - 1)
    elif rank == size - 1:
        received = objects.receive(ME, group, 2, 0)
        expect("objects that were sent", received and list(received.items), [thing(1), thing(2)])


def subgroups(world: ProcessGroup, hosts: list[int], library: str) -> None:
    """Groups on one host and across, in any order: each has the engine for its members' hosts."""
    last = world.size - 1
    for members in ([0, 1], [last, 0], [last, 0, 1], [1]):
        group = groups.new_group(ME, members)
        if world.rank in members:
            _check_engine(group, [hosts[member] for member in members], library)
            if group.size > 1:
                collectives_across.all_collectives(group, (8, 8 << 10))
                collectives_across.uneven_parts(group)
                mistakes(group)
        groups.close_group(group)


if __name__ == "__main__":
    main()
