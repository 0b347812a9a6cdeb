"""Ranks meet through any store that all of them have, and what a forked child makes of its parent's world."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from launcher_variables import assert_raises, by_hand, find

from shim.core import groups, objects
from shim.core.callers import Caller
from shim.core.job import meeting_at_a_store, rendezvous
from shim.core.job.stores import FileStore, HashStore, PrefixStore
from shim.errors import ArgumentError, StateError, StoreTimeoutError

ME = Caller("test", input="item")


class OnlySetAndGet:
    """The least that a store of somebody else's can do."""

    def __init__(self, store: FileStore) -> None:
        self.set = store.set
        self.get = lambda key: store.get(key).decode()


@pytest.mark.ranks(1, 2, 3)
@pytest.mark.parametrize("kind", ["file", "prefix", "set and get"])
def test_ranks_meet_through_a_store(rank: int, world_size: int, kind: str, tmp_path: Path) -> None:
    store = FileStore(str(tmp_path / "store"), world_size, 30)
    place: Any = {"file": store, "prefix": PrefixStore("a", store), "set and get": OnlySetAndGet(store)}[kind]
    tokens = []
    for _ in range(1 if kind == "set and get" else 3):
        me = world_size - 1 - rank
        group = groups.enter_world(ME, "test", rank=me, world_size=world_size, store=place, timeout=30)
        try:
            assert (group.rank, group.size) == (me, world_size)
            tokens.append(groups.world_token(ME))
            assert objects.all_gather(ME, group, tokens[-1]) == [tokens[-1]] * world_size
        finally:
            groups.close_world()
    assert len(set(tokens)) == len(tokens)
    store.barrier("end", world_size)
    store.close()


def test_a_lone_process_asks_nothing_of_its_store() -> None:
    me = rendezvous.locate_at(object(), 0, 1)  # type: ignore[arg-type]  # no store at all
    assert (me.rank, me.size) == (0, 1)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_ranks_of_another_host_are_told_of_on_all(world_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = threading.local()
    monkeypatch.setattr(meeting_at_a_store, "_this_host", lambda: names.host)
    store = HashStore(5)

    def told(rank: int) -> str:
        names.host = "elsewhere 1234" if rank == 1 else "here 5678"
        return rendezvous.locate_at(store, rank, world_size).several_hosts

    with ThreadPoolExecutor(world_size) as threads:
        seen = set(threads.map(told, range(world_size)))
    assert seen == {"rank 0 is on here 5678, and rank 1 on elsewhere 1234"}


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_does_not_come_is_named(rank: int) -> None:
    with pytest.raises(StoreTimeoutError, match="rank 1 of 1" if rank == 0 else "job 1"):
        rendezvous.locate_at(HashStore(0.1), rank, 2)


@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 2), (0, 0), (True, 2), ("0", 2), (0, 1.0)])
def test_ranks_and_sizes_that_are_none(rank: Any, size: Any) -> None:
    with pytest.raises(ArgumentError):
        rendezvous.locate_at(HashStore(5), rank, size)


@pytest.mark.parametrize("place", [{"rank": 0}, {"world_size": 2}, {}])
def test_a_store_needs_rank_and_size(place: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match="store needs rank and world_size"):
        groups.enter_world(ME, "test", store=HashStore(5), **place)
    assert not groups.is_initialized()


@pytest.mark.parametrize("port", ["99999", "0", "-1", "http"])
def test_a_port_that_is_none_is_refused_even_by_a_lone_process(port: str) -> None:
    for size in (1, 2):
        assert_raises(ArgumentError, ["MASTER_PORT", port], by_hand(0, size) | {"MASTER_PORT": port})


def test_a_lone_process_needs_no_port() -> None:
    assert find({"RANK": "0", "WORLD_SIZE": "1"}).size == 1


FORK = """
import os
from shim.core import groups
from shim.core.callers import Caller
from shim.core.engines.choosing import choose
from shim.errors import StateError
me = Caller("test")
groups.enter_world(me, "test")
child = os.fork()
if child == 0:
    assert groups.is_initialized()
    try:
        groups.new_group(me)
    except StateError as error:
        print(error, flush=True)
    groups.close_world()
    groups.enter_world(me, "test")   # a world of its own
    groups.new_group(me)
    groups.close_world()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
groups.new_group(me)
"""


def test_a_forked_child_makes_no_groups_in_its_parents_world() -> None:
    ended = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "belongs to its parent" in ended.stdout
    assert "spawn" in ended.stdout


def test_a_token_needs_a_world() -> None:
    with pytest.raises(StateError):
        groups.world_token(ME)
