"""MindSpore's TCPStore, and the ranks that meet at one."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import pytest
from mindspore_world import check, numbers, world
from wrong_calls import assert_refused

import shim.frontends.mindspore.mint.distributed as mint
from shim.errors import ShimError, UnsupportedError
from shim.frontends.mindspore import ops

SHORT = timedelta(seconds=0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_what_a_store_does() -> None:
    store = mint.TCPStore("127.0.0.1", 0, is_master=True, timeout=SHORT)
    other = ops.TCPStore("127.0.0.1", store.port, 2, timeout=SHORT)
    assert (store.host, other.port) == ("127.0.0.1", store.port)
    assert store.set("key", "text") is None
    assert other.get("key") == b"text"
    other.set("key", b"\0bytes")
    assert store.get("key") == b"\0bytes"
    assert (store.add("number", 3), other.add("number", -5)) == (3, -2)
    assert store.get("number") == b"-2"
    assert (other.delete_key("key"), store.delete_key("key")) == (True, False)
    with pytest.raises(RuntimeError, match=r"^mindspore TCPStore\.get: key 'key' did not come") as late:
        store.get("key")
    assert isinstance(late.value, ShimError)
    store.set("word", "seven")
    with pytest.raises(RuntimeError, match=r"^mindspore TCPStore\.add: ") as worded:
        store.add("word", 1)
    assert isinstance(worded.value, ShimError)


def test_servers_can_be_shared_and_taken_over() -> None:
    store = mint.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)
    again = mint.TCPStore("127.0.0.1", store.port, is_master=True, multi_tenant=True)
    store.set("key", "value")
    assert again.get("key") == b"value"
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    taken = mint.TCPStore("127.0.0.1", port, is_master=True, master_listen_fd=listener.detach())
    taken.set("key", "another")
    assert mint.TCPStore("127.0.0.1", port).get("key") == b"another"


def test_nobody_serves() -> None:
    with pytest.raises(RuntimeError, match="TCPStore: no store was served"):
        mint.TCPStore("127.0.0.1", free_port(), timeout=SHORT)
    with pytest.raises(RuntimeError, match="TCPStore: 2 processes must join"):
        mint.TCPStore("127.0.0.1", 0, 2, True, SHORT)
    mint.TCPStore("127.0.0.1", 0, 2, True, SHORT, wait_for_workers=False)


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "host": ({"host_name": 1}, TypeError, "host_name must be str, got int"),
    "port of text": ({"port": "1"}, TypeError, "port must be int"),
    "port too large": ({"port": 65536}, ValueError, "port must be in 0..65535"),
    "negative port": ({"port": -1}, ValueError, "port must be in 0..65535"),
    "size of text": ({"world_size": "1"}, TypeError, "world_size must be int"),
    "size 0": ({"world_size": 0}, ValueError, "world_size must be at least 1"),
    "server": ({"is_master": 1}, TypeError, "is_master must be bool"),
    "seconds": ({"timeout": 3}, TypeError, "timeout must be timedelta"),
    "waiting": ({"wait_for_workers": None}, TypeError, "wait_for_workers must be bool"),
    "sharing": ({"multi_tenant": 1}, TypeError, "multi_tenant must be bool"),
    "descriptor": ({"master_listen_fd": "3"}, TypeError, "master_listen_fd must be int"),
    "libuv": ({"use_libuv": False}, UnsupportedError, "use_libuv"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments(what: str) -> None:
    wrong, kind, words = WRONG[what]
    assert_refused(
        kind,
        words,
        mint.TCPStore,
        **{"host_name": "127.0.0.1", "port": 0, "is_master": True, "timeout": SHORT, **wrong},
    )


def test_methods_check_their_arguments() -> None:
    store: Any = mint.TCPStore("127.0.0.1", 0, is_master=True, timeout=SHORT)
    for call in (
        lambda: store.add(1, 1),
        lambda: store.add("key", "1"),
        lambda: store.add("key", True),
        lambda: store.set(b"key", "value"),
        lambda: store.set("key", 1),
        lambda: store.get(1),
        lambda: store.delete_key(None),
    ):
        with pytest.raises(TypeError, match=r"^mindspore TCPStore\.\w+: (key|amount|value) must be"):
            call()


@pytest.mark.ranks(3)
def test_ranks_meet_at_a_store(rank: int, world_size: int) -> None:
    with world():  # another way to meet, so that all know the port
        server = mint.TCPStore("127.0.0.1", 0, is_master=True) if rank == 0 else None
        port = [server and server.port]
        mint.broadcast_object_list(port)
        store = server or mint.TCPStore("127.0.0.1", port[0])
    for _ in range(2):
        with world(store=store, world_size=world_size, rank=rank):
            tensor = numbers(rank, 3)
            mint.all_reduce(tensor)
            check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))


@pytest.mark.parametrize("numbers_given", [{}, {"rank": 0}, {"world_size": 1}, {"rank": 1, "world_size": 1}])
def test_a_store_needs_rank_and_size(numbers_given: dict[str, int]) -> None:
    store = mint.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(ValueError, match=r"init_process_group: "):
        mint.init_process_group(store=store, **numbers_given)
    assert not mint.is_initialized()
