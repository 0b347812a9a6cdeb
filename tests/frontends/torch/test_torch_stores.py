"""torch's stores: their constructors, the errors they raise, and what a program may put in their place."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import shim.frontends.torch.distributed as dist
from shim.errors import ArgumentError, StoreLostError, StoreTimeoutError, UnsupportedError

SHORT = timedelta(milliseconds=50)


class InMemory(dist.Store):
    """A user's store, with the methods that a test needs."""

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[str, Any] = {}

    def set(self, key: str, value: Any) -> None:
        self.there[key] = value

    def get(self, key: str) -> bytes:
        return self.there[key]

    def add(self, key: str, amount: int) -> int:
        self.there[key] = str(int(self.there.get(key, 0)) + amount).encode()
        return int(self.there[key])

    def check(self, keys: list[str]) -> bool:
        return all(key in self.there for key in keys)

    def wait(self, keys: list[str], timeout: timedelta = SHORT) -> None:
        if not self.check(keys):
            raise KeyError(keys)

    def list_keys(self) -> list[str]:
        return list(self.there)

    def num_keys(self) -> int:
        return len(self.there)


def test_a_timeout_in_seconds() -> None:
    """Floats, as torch's bindings take them, and no integers."""
    store = dist.TCPStore("localhost", 0, 1, True, 2.5)  # type: ignore[arg-type]  # torch declares timedelta alone
    assert store.timeout == timedelta(seconds=2.5)
    for timed in (store, dist.HashStore()):
        timed.set_timeout(0.25)  # type: ignore[arg-type]
        assert timed.timeout == timedelta(seconds=0.25)
        for timeout in (0.05, timedelta(seconds=0.05)):
            with pytest.raises(dist.DistStoreError):
                timed.wait(["never"], timeout)  # type: ignore[arg-type]
        for wrong in (2, float("nan"), float("inf")):
            with pytest.raises(TypeError, match="timedelta"):
                timed.set_timeout(wrong)  # type: ignore[arg-type]


def test_the_classes_of_errors() -> None:
    assert issubclass(dist.DistError, RuntimeError)
    for kind in (dist.DistBackendError, dist.DistNetworkError, dist.DistStoreError):
        assert issubclass(kind, dist.DistError)
    assert issubclass(dist.QueueEmptyError, dist.DistStoreError)
    assert not issubclass(dist.DistNetworkError, dist.DistStoreError)


def test_a_key_that_does_not_come() -> None:
    store = dist.HashStore()
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    calls: list[Callable[[], Any]] = [
        lambda: store.get("absent"),
        lambda: store.wait(["absent"]),
        lambda: store.wait(["absent"], timedelta(0)),
        lambda: store.multi_get(["absent"]),
        lambda: store.queue_pop("absent"),
        lambda: store.barrier("absent", 2, SHORT),
    ]
    for call in calls:
        with pytest.raises(dist.DistStoreError, match=r"torch\.distributed\.HashStore\.\w+: .*absent") as raised:
            call()
        assert isinstance(raised.value, (StoreTimeoutError, TimeoutError))
    with pytest.raises(dist.QueueEmptyError, match=r"HashStore\.queue_pop"):
        store.queue_pop("absent", block=False)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda store: store.set("a", 1), TypeError),
        (lambda store: store.set(1, "a"), TypeError),
        (lambda store: store.get(None), TypeError),
        (lambda store: store.wait("a"), TypeError),
        (lambda store: store.wait([1]), TypeError),
        (lambda store: store.wait(["a"], 5), TypeError),
        (lambda store: store.set_timeout(1), TypeError),
        (lambda store: store.add("n", 1.5), TypeError),
        (lambda store: store.add("n", "1"), TypeError),
        (lambda store: store.add("n", 2**63), TypeError),
        (lambda store: store.add("text", 1), ValueError),
        (lambda store: store.multi_set(["a", "b"], ["1"]), ValueError),
        (lambda store: store.barrier("b", 0), ValueError),
    ],
)
def test_what_a_store_refuses(call: Callable[[dist.Store], Any], kind: type[Exception]) -> None:
    store = dist.HashStore()
    store.set("text", "abc")
    with pytest.raises(kind) as raised:
        call(store)
    assert isinstance(raised.value, ArgumentError)


def test_a_tcp_store_as_torch_makes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = dist.TCPStore("127.0.0.1", port, 1, True, timedelta(seconds=20), master_listen_fd=listener.detach())
    assert (server.host, server.port, server.timeout) == ("127.0.0.1", port, timedelta(seconds=20))
    assert server.libuvBackend
    again = dist.TCPStore("localhost", 0, None, True, multi_tenant=True, use_libuv=False)
    assert not again.libuvBackend
    same = dist.TCPStore("localhost", again.port, world_size=2, is_master=True, multi_tenant=True)
    same.set("key", "value")
    clone = again.clone()
    assert (type(clone), clone.port, clone.get("key")) == (dist.TCPStore, again.port, b"value")
    with pytest.raises(dist.DistNetworkError, match="cannot listen") as raised:
        dist.TCPStore("127.0.0.1", port, 1, True)
    assert isinstance(raised.value, StoreLostError)
    with pytest.raises(dist.DistStoreError, match="2 processes must join"):
        dist.TCPStore("localhost", 0, 2, True, SHORT)
    del server
    with pytest.raises(dist.DistNetworkError, match=r"TCPStore: no store was served"):
        dist.TCPStore("127.0.0.1", port, 1, False, SHORT)


@pytest.mark.parametrize(
    "arguments",
    [(5, 0), ("localhost", "0"), ("localhost", 0, "1"), ("localhost", 0, 1, True, 5)],
    ids=["host_name", "port", "world_size", "timeout"],
)
def test_arguments_of_other_types(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        dist.TCPStore(*arguments)
    with pytest.raises(ValueError, match="65535"):
        dist.TCPStore("localhost", 65536)


def test_a_file_store(tmp_path: Path) -> None:
    store = dist.FileStore(str(tmp_path / "store"), 1)
    assert store.path == str(tmp_path / "store")
    store.queue_push("q", "1")
    clone = store.clone()
    assert (type(clone), clone.path, clone.queue_pop("q")) == (dist.FileStore, store.path, b"1")
    del store
    assert not (tmp_path / "store").exists()
    with pytest.raises(TypeError, match="file_name"):
        dist.FileStore(tmp_path / "store")
    with pytest.raises(dist.DistStoreError, match="cannot be opened"):
        dist.FileStore(str(tmp_path / "absent" / "store"))


def test_a_prefix_store_shows_what_it_is_made_of() -> None:
    whole = dist.HashStore()
    part = dist.PrefixStore("a", dist.PrefixStore("b", whole))
    part.set("key", "value")
    assert whole.get("b/a/key") == b"value"
    assert part.underlying_store.underlying_store is whole
    clone = part.clone()
    assert (type(clone), clone.get("key")) == (dist.PrefixStore, b"value")
    assert clone.underlying_store.underlying_store.list_keys() == ["b/a/key"]


def test_a_store_of_the_users_own() -> None:
    mine = InMemory()
    part = dist.PrefixStore("a", mine)
    part.set("key", "value")
    assert (part.get("key"), mine.there) == (b"value", {"a/key": b"value"})
    assert [part.add("n", 2), part.add("n", -3)] == [2, -1]
    assert part.check(["key", "n"])
    assert not part.check(["absent"])
    assert sorted(part.list_keys()) == ["key", "n"]
    assert part.num_keys() == 2
    part.wait(["key"])
    part.wait(["key"], SHORT)
    assert part.timeout == timedelta(minutes=5)
    part.set_timeout(SHORT)
    assert mine.timeout == part.timeout == SHORT
    with pytest.raises(KeyError):
        part.wait(["absent"], SHORT)
    with pytest.raises(UnsupportedError, match=r"InMemory\.queue_len"):
        mine.queue_len("q")
    with pytest.raises(TypeError, match="must be a Store"):
        dist.PrefixStore("a", object())


def test_a_store_of_torchs_own() -> None:
    import torch.distributed

    theirs = torch.distributed.HashStore()
    part = dist.PrefixStore("a", theirs)
    part.multi_set(["key", "other"], ["1", "2"])
    part.append("key", "x")
    part.queue_push("q", "3")
    assert part.multi_get(["key", "other"]) == [b"1x", b"2"] == theirs.multi_get(["a/key", "a/other"])
    assert part.compare_set("key", "1x", "4") == b"4"
    assert (part.queue_len("q"), part.queue_pop("q"), part.queue_len("q")) == (1, b"3", 0)
    assert (part.delete_key("key"), part.delete_key("key")) == (True, False)
    values = [bytes([255, 0, 128 + number]) for number in range(5)]  # no text
    part.set("key", values[0])
    part.multi_set(["second", "third"], values[1:3])
    part.append("third", values[3])
    part.queue_push("q", values[4])
    assert part.multi_get(["key", "second", "third"]) == [values[0], values[1], values[2] + values[3]]
    assert part.compare_set("key", values[0], values[4]) == values[4] == part.queue_pop("q")
    part.delete_key("key")
    part.set_timeout(SHORT)
    assert theirs.timeout == SHORT == part.timeout
    with pytest.raises(torch.distributed.DistStoreError):
        part.get("absent")
    assert part.clone().get("other") == b"2"
    with pytest.raises(torch.distributed.QueueEmptyError):
        part.queue_pop("q", False)


def test_a_store_without_a_kind_has_no_methods() -> None:
    with pytest.raises(NotImplementedError, match=r"torch\.distributed\.Store\.get"):
        dist.Store().get("key")
