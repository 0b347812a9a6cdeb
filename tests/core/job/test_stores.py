"""Every kind of store does the same, between threads and between processes, and none waits for ever."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from store_threads import SHORT, in_thread, nothing_leaks

from shim.core.job.stores import FileStore, HashStore, LocalStore, PrefixStore, Store, TCPStore
from shim.errors import ArgumentError, QueueEmptyError, StoreTimeoutError

KINDS = ("hash", "file", "local", "tcp", "tcp on all addresses", "prefix", "prefix of tcp")


def make(kind: str, folder: Path) -> Store:
    if kind == "hash":
        return HashStore(20)
    if kind == "file":
        return FileStore(str(folder / "store"), 1, 20)
    if kind == "local":
        return LocalStore(str(folder), 20)
    if kind == "prefix":
        return PrefixStore("before", HashStore(20))
    if kind == "prefix of tcp":
        return PrefixStore("before", TCPStore("127.0.0.1", 0, 1, True, 20))
    return TCPStore("localhost" if kind == "tcp" else socket.gethostname(), 0, 1, True, 20)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = make(request.param, tmp_path)
    yield made
    made.close()
    getattr(made, "underlying", made).close()


@pytest.fixture(autouse=True)
def _leaks_nothing() -> Iterator[None]:
    with nothing_leaks():
        yield


@pytest.mark.parametrize("value", [b"", b"\x00\xff", b"text", bytes(200_000)], ids=["none", "binary", "text", "long"])
def test_a_value_comes_back(store: Store, value: bytes) -> None:
    store.set("key", value)
    assert store.get("key") == value


def test_text_is_utf8_and_a_key_may_be_bytes(store: Store) -> None:
    store.set("schlüssel", "größe")
    assert store.get("schlüssel".encode()) == "größe".encode()
    assert store.list_keys() == ["schlüssel"]
    store.set("", bytearray(b"empty key"))
    assert store.get("") == b"empty key"


def test_text_that_has_no_utf8_is_refused(store: Store) -> None:
    with pytest.raises(ArgumentError):
        store.set("key", "\udc00")
    with pytest.raises(ArgumentError):
        store.set("\ud800", "value")


def test_add_counts_and_keeps_text(store: Store) -> None:
    assert [store.add("n", amount) for amount in (1, 5, -10, 0)] == [1, 6, -4, -4]
    assert store.get("n") == b"-4"
    store.set("n", "41")
    assert store.add("n", 1) == 42


def test_add_refuses_what_is_no_number_and_what_does_not_fit(store: Store) -> None:
    store.set("text", "12x")
    with pytest.raises(ArgumentError, match=r"'.*text' must hold a whole number"):
        store.add("text", 1)
    store.add("big", 2**63 - 1)
    with pytest.raises(ArgumentError, match="64 bits"):
        store.add("big", 1)
    assert (store.get("text"), store.get("big")) == (b"12x", str(2**63 - 1).encode())


def test_append(store: Store) -> None:
    store.append("key", b"a")
    store.append("key", "bc")
    assert store.get("key") == b"abc"


def test_compare_set(store: Store) -> None:
    assert store.compare_set("key", "other", "new") == b"other"
    assert not store.check(["key"])
    assert store.compare_set("key", "", "first") == b"first"
    assert store.compare_set("key", "", "second") == b"first"
    assert store.compare_set("key", "wrong", "second") == b"first"
    assert store.compare_set("key", b"first", b"second") == b"second"
    assert store.get("key") == b"second"


def test_delete_and_check(store: Store) -> None:
    store.set("a", "1")
    store.set("b", "2")
    assert store.check(["a", "b"])
    assert store.check([])
    assert (store.delete_key("a"), store.delete_key("a")) == (True, False)
    assert not store.check(["a", "b"])
    assert (store.list_keys(), store.num_keys()) == (["b"], 1)


def test_many_at_once(store: Store) -> None:
    store.multi_set(["a", "b"], ["1", b"2"])
    assert store.multi_get(["b", "a"]) == [b"2", b"1"]
    assert store.multi_get([]) == []
    for values in (["3"], ["3", "4", "5"]):
        with pytest.raises(ArgumentError, match=f"as many values as keys, got 2 keys and {len(values)} values"):
            store.multi_set(["a", "b"], values)
    assert store.multi_get(["a", "b"]) == [b"1", b"2"]


def test_a_queue_gives_the_first_first(store: Store) -> None:
    assert store.queue_len("q") == 0
    store.queue_push("q", "1")
    store.queue_push("q", b"2")
    assert store.queue_len("q") == 2
    assert store.check(["q"])
    assert store.num_keys() == 0
    assert [store.queue_pop("q"), store.queue_pop("q", False)] == [b"1", b"2"]
    assert not store.check(["q"])
    with pytest.raises(QueueEmptyError, match="queue of key 'q' is empty"):
        store.queue_pop("q", block=False)


@pytest.mark.parametrize("call", ["get", "wait", "multi_get", "queue_pop", "barrier"])
def test_what_waits_ends_in_time_and_the_store_stays_usable(store: Store, call: str) -> None:
    store.set("there", "1")
    store.set_timeout(SHORT)
    calls: dict[str, Callable[[], Any]] = {
        "get": lambda: store.get("absent"),
        "wait": lambda: store.wait(["there", "absent"]),
        "multi_get": lambda: store.multi_get(["there", "absent"]),
        "queue_pop": lambda: store.queue_pop("absent"),
        "barrier": lambda: store.barrier("absent", 2),
    }
    with pytest.raises(StoreTimeoutError, match=r"absent.*did not come within 0.05 s") as raised:
        calls[call]()
    assert isinstance(raised.value, TimeoutError)
    assert store.get("there") == b"1"


def test_a_limit_of_the_call_goes_before_the_stores(store: Store) -> None:
    with pytest.raises(StoreTimeoutError, match=r"within 0\.05 s"):
        store.get("absent", timeout=SHORT)
    with pytest.raises(StoreTimeoutError, match="within 0 s"):
        store.wait(["absent"], 0)


@pytest.mark.parametrize("call", ["get", "wait", "queue_pop", "barrier"])
def test_a_thread_waits_for_another(store: Store, call: str) -> None:
    waits: dict[str, Callable[[], Any]] = {
        "get": lambda: store.get("late"),
        "wait": lambda: store.wait(["late", "later"]),
        "queue_pop": lambda: store.queue_pop("late"),
        "barrier": lambda: store.barrier("late", 2),
    }
    result = in_thread(waits[call])
    if call == "barrier":
        store.barrier("late", 2)
    elif call == "queue_pop":
        store.queue_push("late", "value")
    else:
        store.set("late", "value")
        store.set("later", "value")
    assert result() == (b"value" if call in ("get", "queue_pop") else None)


def test_threads_count_together(store: Store) -> None:
    def count() -> None:
        for _ in range(50):
            store.add("n", 1)
            store.append("text", "x")

    for result in [in_thread(count) for _ in range(4)]:
        assert result() is None
    assert store.add("n", 0) == 200
    assert store.get("text") == b"x" * 200


def test_each_pushed_value_is_popped_once(store: Store) -> None:
    results = [in_thread(lambda: store.queue_pop("q")) for _ in range(4)]
    for number in range(4):
        store.queue_push("q", str(number))
    assert sorted(result() for result in results) == [b"0", b"1", b"2", b"3"]


def test_a_barrier_can_be_used_again(store: Store) -> None:
    for _ in range(3):
        result = in_thread(lambda: store.barrier("key", 2))
        store.barrier("key", 2)
        assert result() is None
    with pytest.raises(StoreTimeoutError):
        store.barrier("key", 2, SHORT)
    with pytest.raises(ArgumentError, match="at least 1, got 0"):
        store.barrier("key", 0)


def test_a_clone_has_the_same_content(store: Store) -> None:
    clone = store.clone()
    clone.set("key", "value")
    assert store.get("key") == b"value"
    assert clone.timeout == store.timeout
    clone.close()
    getattr(clone, "underlying", clone).close()
    assert store.get("key") == b"value"


def test_a_prefix_is_a_part_of_the_store() -> None:
    whole = HashStore(20)
    whole.set("key", "outside")
    part = PrefixStore("a", PrefixStore("b", whole))
    part.multi_set(["key", "other"], ["1", "2"])
    part.queue_push("q", "3")
    assert sorted(whole.list_keys()) == ["b/a/key", "b/a/other", "key"]
    assert sorted(part.list_keys()) == ["key", "other"]
    assert part.compare_set("key", "1", "4") == whole.get("b/a/key") == b"4"
    assert (part.num_keys(), whole.queue_len("b/a/q")) == (3, 1)
    part.set_timeout(SHORT)
    assert (part.timeout, whole.timeout) == (SHORT, SHORT)
    with pytest.raises(StoreTimeoutError, match="'b/a/absent'"):
        part.get("absent")
