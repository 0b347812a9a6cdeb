"""A TCPStore's server comes and goes as it should, tells foreigners apart, and keeps nobody waiting."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from store_threads import SHORT, in_thread, nothing_leaks

from shim.core.job.stores import TCPStore
from shim.errors import ArgumentError, StoreError, StoreLostError, StoreTimeoutError

GREETING = b"\x08\x00\x00\x00\x00shim  v2"


@pytest.fixture(autouse=True)
def _leaks_nothing() -> Iterator[None]:
    with nothing_leaks():
        yield


def test_the_server_takes_a_free_port_and_frees_it() -> None:
    store = TCPStore("localhost", 0, 1, True, 20)
    port = store.port
    with pytest.raises(StoreLostError, match=f"cannot listen on port {port}"):
        TCPStore("localhost", port, 1, True, 20)
    store.close()
    TCPStore("localhost", port, 1, True, 20).close()


def test_a_store_that_is_no_longer_used_ends_its_server() -> None:
    store = TCPStore("localhost", 0, 1, True, 20)
    clone = store.clone()
    port = store.port
    del store
    assert clone.add("n", 1) == 1
    del clone
    with pytest.raises(StoreLostError):
        TCPStore("localhost", port, timeout=SHORT)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_both_loopback_addresses_reach_a_local_server(address: str) -> None:
    server = TCPStore("localhost", 0, 1, True, 20)
    client = TCPStore(address, server.port, timeout=20)
    client.set("key", "value")
    assert server.get("key") == b"value"
    client.close()
    server.close()


def test_a_client_waits_for_its_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    client = in_thread(lambda: TCPStore("127.0.0.1", port, timeout=20))
    server = TCPStore("127.0.0.1", port, 2, True, 20)  # returns when both have come
    server.set("key", "value")
    store = client()
    assert store.get("key") == b"value"
    store.close()
    server.close()


def test_a_server_without_its_clients_gives_up() -> None:
    with pytest.raises(StoreTimeoutError, match=r"2 processes must join the store within 0\.05 s"):
        TCPStore("localhost", 0, 2, True, SHORT)
    TCPStore("localhost", 0, 2, True, 20, wait_for_ranks=False).close()


def test_a_client_without_a_server_gives_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(StoreLostError, match="no store was served") as raised:
        TCPStore("127.0.0.1", port, timeout=SHORT)
    assert isinstance(raised.value, ConnectionError)


def test_who_waits_hears_that_the_server_is_gone() -> None:
    server = TCPStore("localhost", 0, 1, True, 20)
    client = TCPStore("localhost", server.port, timeout=20)
    result = in_thread(lambda: client.get("absent"))
    server.close()
    assert isinstance(result(), StoreLostError)
    with pytest.raises(StoreLostError, match="is gone"):
        client.set("key", "value")
    client.close()
    with pytest.raises(StoreError, match="is closed"):
        client.set("key", "value")


def test_something_else_than_a_store_is_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            with other.accept()[0] as connection:
                connection.sendall(b"HTTP/1.0 400 Bad Request")

        result = in_thread(answer)
        with pytest.raises(StoreLostError, match="not a store of this project"):
            TCPStore("127.0.0.1", other.getsockname()[1], timeout=20)
        assert result() is None


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"shim-store 1\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\x00\x00\x01\xc8",
        GREETING + b"\x94\x01\x00\x00\x02\x90\x01\x00\x00" + 400 * b"9",
        GREETING + b"\xff\xff\xff\xff\x01",
        GREETING + b"\x00\x00\x00\x00\x63",
        GREETING + b"\x05\x00\x00\x00\x01\x05\x00\x00\x00x",
        GREETING + b"\x06\x00\x00\x00\x03\x02\x00\x00\x0010",
        GREETING + 2 * b"\x0b\x00\x00\x00\x02\x02\x00\x00\x0099\x01\x00\x00\x00a",
    ],
    ids=[
        "another protocol",
        "another version",
        "the greeting of TLS",
        "a large frame before the greeting",
        "a wait beyond floating point",
        "a length beyond reason",
        "an unknown code",
        "a field cut off",
        "no time",
        "a question before the answer",
    ],
)
def test_a_server_closes_on_what_no_store_sends(sent: bytes) -> None:
    server = TCPStore("localhost", 0, 1, True, 20)
    with socket.create_connection(("localhost", server.port), 20) as other:
        other.sendall(sent)
        received = b"".join(iter(lambda: _received(other), b""))
    assert received in (b"", GREETING)
    server.set("key", "value")
    assert server.get("key") == b"value"
    server.close()


def test_a_wait_for_longer_than_clocks_count_holds_up_nobody() -> None:
    server = TCPStore("localhost", 0, 1, True, 20)
    with socket.create_connection(("localhost", server.port), 20) as other:
        other.sendall(GREETING + b"\x1d\x00\x00\x00\x02\x14\x00\x00\x00" + 20 * b"9" + b"\x01\x00\x00\x00a")
        server.set("b", "1")
        server.set("a", "2")
        received = b""
        while not received.endswith(b"2"):
            received += other.recv(100)
    server.close()


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100)
    except ConnectionError:
        return b""


def test_a_value_has_a_size_limit() -> None:
    server = TCPStore("localhost", 0, 1, True, 20)
    with pytest.raises(ArgumentError, match="at most 67108864 bytes"):
        server.set("key", bytes((64 << 20) + 1))
    server.set("one", bytes(40 << 20))
    server.set("two", bytes(40 << 20))
    with pytest.raises(ArgumentError, match="at most 67108864 bytes"):
        server.multi_get(["one", "two"])
    assert len(server.get("one")) == 40 << 20
    server.close()


def test_a_listening_socket_is_taken_over() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with pytest.raises(ArgumentError, match="must be a TCP socket on port 1, got one"):
        TCPStore("127.0.0.1", 1, 1, True, 20, listen_fd=listener.fileno())
    store = TCPStore("127.0.0.1", port, 1, True, 20, listen_fd=listener.detach())
    assert store.add("n", 2) == 2
    store.close()
    with pytest.raises(ArgumentError, match="listen_fd must be a socket"):
        TCPStore("127.0.0.1", port, 1, True, 20, listen_fd=9999)


def test_servers_of_one_process_may_be_one() -> None:
    first = TCPStore("localhost", 0, 1, True, 20, shared=True)
    second = TCPStore("localhost", first.port, 1, True, 20, shared=True)
    second.set("key", "value")
    first.close()
    assert second.get("key") == b"value"
    second.close()


def test_a_port_beyond_the_last_is_refused() -> None:
    with pytest.raises(ArgumentError, match="got 65536"):
        TCPStore("localhost", 65536)


def test_a_client_that_meets_a_server_about_to_end_waits_for_the_next() -> None:
    for _ in range(20):
        first = TCPStore("localhost", 0, 1, True, 20)
        client = in_thread(lambda port=first.port: TCPStore("localhost", port, timeout=20))
        first.close()
        second = TCPStore("localhost", first.port, 1, True, 20)
        store = client()
        if isinstance(store, TCPStore):
            store.close()
        else:
            pytest.fail(f"the client gave up: {store!r}")
        second.close()


INTERRUPTED = """
import signal
from shim.core.job.stores import TCPStore
signal.signal(signal.SIGINT, signal.default_int_handler)  # which what runs the tests may have had ignored
store = TCPStore("localhost", 0, 1, True, 30)
try:
    print("waiting", flush=True)
    store.get("absent")
except KeyboardInterrupt:
    store.set("key", "value")
    print(store.get("key"), flush=True)
"""


def test_each_wait_ends_at_its_own_time() -> None:
    store = TCPStore("localhost", 0, 1, True, 20)
    results = []
    for limit in (0.2, 0.5, 0.1):
        results.append(in_thread(lambda limit=limit: store.get("absent", limit)))
        time.sleep(0.02)  # one after another
    assert [type(result()) for result in results] == [StoreTimeoutError] * 3
    store.close()


def test_ctrl_c_ends_a_wait_and_the_store_stays_usable() -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)  # it has asked by then
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "b'value'\n"
    assert process.returncode == 0


def test_another_thread_may_take_the_last_idle_connection() -> None:
    class TakenMeanwhile(list[socket.socket]):
        """Empty by the time one looks into it."""

        def __bool__(self) -> bool:
            return True

    store = TCPStore("localhost", 0, 1, True, 20)
    idle = store._connections._idle
    while idle:
        idle.pop().close()
    store._connections._idle = TakenMeanwhile()
    assert store.add("n", 1) == 1
    store.close()
