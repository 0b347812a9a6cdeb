"""How the ranks of torch programs meet: at any store, at URLs, through handlers; and the store they have afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from torch_world import world

import shim.frontends.torch.distributed as dist
from shim.errors import ArgumentError, StateError, UnsupportedError
from shim.frontends.torch._stores import url_handlers
from shim.frontends.torch.distributed import distributed_c10d as c10d

SHORT = timedelta(milliseconds=50)


class SetAndGet:
    """A store of somebody else's, with little in it."""

    def __init__(self, path: str) -> None:
        self._file = dist.FileStore(path)

    def set(self, key: str, value: str) -> None:
        self._file.set(key, value)

    def get(self, key: str) -> bytes:
        return self._file.get(key)


def tcp_store(module: Any, rank: int, world_size: int, folder: Path) -> Any:
    """A TCPStore of *module*'s that rank 0 serves on a free port, which it leaves in a file."""
    meeting = dist.FileStore(str(folder / "port"), world_size)
    if rank == 0:
        store = module.TCPStore("localhost", 0, world_size, True, wait_for_workers=False)
        meeting.set("port", str(store.port))
    else:
        store = module.TCPStore("localhost", int(meeting.get("port")), world_size, False)
    meeting.barrier("all", world_size)
    return store


def make_store(kind: str, rank: int, world_size: int, folder: Path) -> Any:
    import torch.distributed

    path = str(folder / "store")
    makers: dict[str, Callable[[], Any]] = {
        "our TCPStore": lambda: tcp_store(dist, rank, world_size, folder),
        "torch's TCPStore": lambda: tcp_store(torch.distributed, rank, world_size, folder),
        "our FileStore": lambda: dist.FileStore(path, world_size),
        "torch's FileStore": lambda: torch.distributed.FileStore(path, world_size),
        "our PrefixStore": lambda: dist.PrefixStore("mine", dist.FileStore(path, world_size)),
        "torch's PrefixStore": lambda: torch.distributed.PrefixStore(
            "a", torch.distributed.FileStore(path, world_size)
        ),
        "set and get": lambda: SetAndGet(path),
    }
    return makers[kind]()


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize(
    "kind",
    [
        "our TCPStore",
        "torch's TCPStore",
        "our FileStore",
        "torch's FileStore",
        "our PrefixStore",
        "torch's PrefixStore",
        "set and get",
    ],
)
def test_ranks_meet_at_a_store(rank: int, world_size: int, kind: str, tmp_path: Path) -> None:
    store = make_store(kind, rank, world_size, tmp_path)
    for _ in range(1 if kind == "set and get" else 2):
        dist.init_process_group("gloo", store=store, rank=world_size - 1 - rank, world_size=world_size)
        try:
            assert (dist.get_rank(), dist.get_world_size()) == (world_size - 1 - rank, world_size)
            dist.barrier()
            place = c10d._get_default_store()
            assert isinstance(place, dist.PrefixStore)
            assert place.underlying_store is store or type(place.underlying_store) is type(store)
            place.set(f"rank {rank}", str(rank))
            dist.barrier()
            assert [place.get(f"rank {other}") for other in range(world_size)] == [
                str(other).encode() for other in range(world_size)
            ]
            dist.barrier()
        finally:
            dist.destroy_process_group()


def test_a_hash_store_is_for_a_lone_process() -> None:
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        c10d._get_default_store().set("key", "value")
        assert store.get("default_pg/key") == b"value"
    finally:
        dist.destroy_process_group()
    with pytest.raises(UnsupportedError, match=r"HashStore is for the threads of one, got world_size 2"):
        dist.init_process_group("gloo", store=store, rank=0, world_size=2)
    with pytest.raises(ValueError, match=r"rank must be in 0\.\.0, got 1"):
        dist.init_process_group("gloo", store=store, rank=1, world_size=1)


def test_nobody_else_comes_to_the_store(tmp_path: Path) -> None:
    store = dist.FileStore(str(tmp_path / "store"))
    store.set_timeout(SHORT)
    with pytest.raises(dist.DistStoreError, match=r"init_process_group: .*did not come"):
        dist.init_process_group("gloo", store=store, rank=1, world_size=2)
    assert not dist.is_initialized()


@pytest.mark.ranks(1, 3)
def test_a_world_has_a_store_however_its_ranks_met(rank: int, world_size: int) -> None:
    seen = []
    for turn in range(2):
        with world():
            store = c10d._get_default_store()
            assert not store.check(["turn"])
            dist.barrier()
            store.set("turn", str(turn))
            group = dist.new_group(list(range(1, world_size)) or None)
            own = [] if group == dist.GroupMember.NON_GROUP_MEMBER else [group.get_group_store()]
            for place in own:
                place.add("members", 1)
                place.barrier("all", group.size())
                assert place.add("members", 0) == group.size()
                assert c10d._get_process_group_store(group).get("members") == str(group.size()).encode()
            seen.append(store)
            dist.barrier()
    assert store is not seen[0]
    for call in (c10d._get_default_store, lambda: c10d._get_process_group_store(None)):
        with pytest.raises(ValueError):
            call()


@pytest.mark.ranks(2)
def test_a_barrier_at_the_store(rank: int, world_size: int) -> None:
    with world():
        store = c10d._get_default_store()
        for name in ("one", "two"):
            c10d._store_based_barrier(rank, store, name, world_size, timedelta(seconds=20))
        with pytest.raises(dist.DistStoreError, match=r"3 ranks must come within 0:00:00\.05"):
            c10d._store_based_barrier(rank, store, "three", 3, SHORT)
        dist.barrier()


def test_a_barrier_at_a_store_of_torchs() -> None:
    """Between pauses it looks again, and what is no pause ends it."""
    import torch.distributed

    class Lost(torch.distributed.HashStore):  # type: ignore[misc]  # torch's classes are not typed
        def wait(self, *arguments: Any) -> None:
            raise torch.distributed.DistNetworkError("connection lost")

    theirs = torch.distributed.HashStore()
    for store in (theirs, dist.PrefixStore("part", theirs)):
        c10d._store_based_barrier(0, store, "alone", 1, timedelta(seconds=20))
        with pytest.raises(dist.DistStoreError, match=r"2 ranks must come within 0:00:00\.05.*, and 1 have"):
            c10d._store_based_barrier(0, store, "two", 2, SHORT, timedelta(milliseconds=20))
    with pytest.raises(torch.distributed.DistNetworkError, match="connection lost"):
        c10d._store_based_barrier(0, Lost(), "two", 2, timedelta(seconds=20))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("scheme", ["file", "tcp"])
def test_a_url_gives_a_store(rank: int, world_size: int, scheme: str, tmp_path: Path) -> None:
    port = tcp_store(dist, rank, world_size, tmp_path).port
    dist.FileStore(str(tmp_path / "closed")).barrier("all", world_size)  # its store is gone, and the port is free
    url = f"file://{tmp_path / 'meet'}" if scheme == "file" else f"tcp://localhost:{port}"
    met = dist.rendezvous(url, rank, world_size, timeout=timedelta(seconds=20))
    store, me, size = next(met)
    assert (me, size, store.timeout) == (rank, world_size, timedelta(seconds=20))
    store.barrier("all", world_size)
    with pytest.raises(RuntimeError, match="cannot meet again"):
        next(met)
    dist.FileStore(str(tmp_path / "done")).barrier("all", world_size)  # rank 0 serves the others until they are


def test_the_environment_gives_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.delenv(name, raising=False)
    variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    for name, value in variables.items():
        with pytest.raises(ValueError, match=f"{name} must be set"):
            next(dist.rendezvous("env://"))
        monkeypatch.setenv(name, value)
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
        with monkeypatch.context() as wrong:
            wrong.setenv(name, "two")
            with pytest.raises(ArgumentError, match=f"env: {name} in the environment must be a number, got 'two'"):
                next(dist.rendezvous("env://"))
    for name in ("rank", "world_size"):
        with pytest.raises(ArgumentError, match=f"env: {name} must be a number, got 'two'"):
            next(dist.rendezvous(f"env://?{name}=two"))
    store, rank, size = next(dist.rendezvous("env://"))
    assert (type(store), rank, size) == (dist.TCPStore, 0, 1)
    again, _, _ = next(dist.rendezvous(f"tcp://localhost:{store.port}?rank=0&world_size=1"))
    store.set("key", "value")
    assert again.get("key") == b"value"  # servers of one process on one port are one
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    agents, _, _ = next(dist.rendezvous("env://"))
    assert agents.get("key") == b"value"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((3,), RuntimeError),
        (("foo://x",), RuntimeError),
        (("tcp://localhost:0", "0", 1), RuntimeError),
        (("tcp://localhost:0", 0, "1"), RuntimeError),
        (("tcp://localhost:0?rank=0", 0, 1), AssertionError),
        (("tcp://localhost", 0, 1), ValueError),
        (("tcp://localhost:0?rank=0",), ValueError),
        (("tcp://localhost:0", 0), ValueError),
        (("tcp://localhost:99999", 0, 1), ValueError),
        (("file://", 0, 1), ValueError),
        (("file:///tmp/absent", 0), ValueError),
    ],
)
def test_what_rendezvous_refuses(arguments: tuple[Any, ...], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        next(dist.rendezvous(*arguments))


@pytest.mark.ranks(2)
def test_a_registered_handler_is_used(rank: int, world_size: int, tmp_path: Path) -> None:
    asked = []

    def handler(url: str, **options: Any) -> Iterator[tuple[Any, int, int]]:
        asked.append((url, options))
        yield dist.FileStore(str(tmp_path / "store")), rank, world_size

    dist.register_rendezvous_handler("mine", handler)
    try:
        with pytest.raises(RuntimeError, match="has a handler"):
            dist.register_rendezvous_handler("mine", handler)
        limit = timedelta(seconds=20)
        dist.init_process_group("gloo", init_method="mine://somewhere?a=b", timeout=limit)
        dist.barrier()
        dist.destroy_process_group()
        dist.init_process_group("gloo", init_method="mine://here", rank=rank, world_size=world_size, timeout=limit)
        dist.barrier()
        dist.destroy_process_group()
        assert asked == [
            ("mine://somewhere?a=b", {"timeout": limit}),
            (f"mine://here?rank={rank}&world_size={world_size}", {"timeout": limit}),
        ]
    finally:
        del url_handlers._handlers["mine"]
    with pytest.raises(RuntimeError, match="mine://") as raised:
        dist.init_process_group("gloo", init_method="mine://here")
    assert isinstance(raised.value, (StateError, ValueError))
    with pytest.raises(RuntimeError, match="has a handler"):
        dist.register_rendezvous_handler("tcp", handler)


PORT = """
import shim.frontends.torch.distributed as dist
try:
    dist.init_process_group("gloo")
except ValueError as error:
    print(error)
"""

FORK = """
import os
import shim.frontends.torch.distributed as dist
dist.init_process_group("gloo")
group = dist.new_group()
child = os.fork()
if child == 0:
    assert dist.is_initialized() and dist.get_rank() == 0 and dist.get_world_size(group) == 1   # as with torch
    for use in (dist.barrier, lambda: dist.barrier(group), dist.new_group):
        try:
            use()
        except RuntimeError as error:
            print(error, flush=True)
    dist.destroy_process_group()
    dist.init_process_group("gloo")
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
dist.barrier(group)
"""


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | variables,
    )


def test_a_port_that_is_none_is_refused() -> None:
    ended = run(PORT, RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="99999")
    assert ended.stdout.startswith("torch.distributed.init_process_group: MASTER_PORT must give a port"), ended.stderr


def test_a_forked_child_knows_its_rank_and_uses_no_group() -> None:
    ended = run(FORK)
    assert ended.returncode == 0, ended.stderr
    assert [line.split(":")[0] for line in ended.stdout.splitlines()[::2]] == [
        "torch.distributed.barrier",
        "torch.distributed.barrier",
        "torch.distributed.new_group",
    ]
    assert ended.stdout.count("belongs to its parent") == 3
