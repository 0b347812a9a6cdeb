"""Stores between processes: those of a job, forked ones, and ones that die; and the files they leave."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from store_threads import in_thread

from shim.core.job.stores import FileStore, LocalStore, Store, TCPStore
from shim.errors import StoreError, StoreLostError


def test_the_last_to_leave_removes_the_file(tmp_path: Path) -> None:
    first, second = (FileStore(str(tmp_path / "store"), 2, 20) for _ in range(2))
    first.close()
    second.set("key", "value")
    assert (tmp_path / "store").exists()
    del second
    assert not (tmp_path / "store").exists()
    with pytest.raises(StoreError, match="is closed"):
        first.get("key")


def test_a_file_without_a_world_size_stays(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path / "store"))
    store.set("key", "value")
    store.close()
    assert FileStore(str(tmp_path / "store")).get("key") == b"value"


def test_a_half_written_record_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "store"
    FileStore(str(path)).multi_set(["a", "b"], ["1", "2"])
    whole = path.read_bytes()
    FileStore(str(path)).set("b", "3")
    longer = path.read_bytes()
    for size in range(len(whole), len(longer)):
        path.write_bytes(longer[:size])
        store = FileStore(str(path))
        assert store.multi_get(["a", "b"]) == [b"1", b"2"]
        store.set("c", "4")
        assert FileStore(str(path)).multi_get(["a", "b", "c"]) == [b"1", b"2", b"4"]


def test_a_damaged_record_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "store"
    FileStore(str(path)).set("a", "1")
    FileStore(str(path)).set("b", "2")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert FileStore(str(path)).list_keys() == ["a"]


def test_a_damaged_record_before_others_is_an_error_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "store"
    for number in range(3):
        FileStore(str(path)).set(f"key {number}", "value")
    content = bytearray(path.read_bytes())
    content[content.index(b"key 1")] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(StoreError, match="is damaged: the record at byte"):
            FileStore(str(path)).set("another", "value")
    assert path.read_bytes() == content


def test_zeros_behind_the_records_are_cut_off(tmp_path: Path) -> None:
    """As a file system may leave them when the machine loses its power."""
    path = tmp_path / "store"
    FileStore(str(path)).set("a", "1")
    path.write_bytes(path.read_bytes() + bytes(16))
    assert FileStore(str(path)).list_keys() == ["a"]
    FileStore(str(path)).set("b", "2")
    assert FileStore(str(path)).multi_get(["a", "b"]) == [b"1", b"2"]


def test_a_whole_record_that_no_store_writes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "store"
    FileStore(str(path)).set("a", "1")
    for body in (b"\xff", b"\x01\xff\xff\xff\xff"):
        path.write_bytes(path.read_bytes() + struct.pack("<II", len(body), zlib.crc32(body)) + body)
        with pytest.raises(StoreError, match="is damaged"):
            FileStore(str(path)).get("a")


def test_what_is_cut_off_does_not_come_back(tmp_path: Path) -> None:
    """A record that was cut off within a value that holds a record itself, just where a shorter one would end."""
    path = tmp_path / "store"
    FileStore(str(path)).set("a", "1")
    start = path.read_bytes()
    FileStore(str(path)).set("b", "2")
    record = path.read_bytes()[len(start) :]
    path.write_bytes(start + b"\xff\xff\0\0" + bytes(len(record) - 4) + record)
    FileStore(str(path)).set("c", "3")  # as long as the record
    FileStore(str(path)).set("d", "4")
    assert sorted(FileStore(str(path)).list_keys()) == ["a", "c", "d"]
    assert path.read_bytes().count(record) == 0


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_text("somebody's notes")
    with pytest.raises(StoreError, match="is not a store's file"):
        FileStore(str(path))
    assert path.read_text() == "somebody's notes"
    with pytest.raises(StoreError, match="cannot be opened"):
        FileStore(str(tmp_path / "absent" / "store"))


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("kind", ["file", "local", "tcp"])
def test_processes_share_a_store(rank: int, world_size: int, kind: str, tmp_path: Path) -> None:
    meeting = FileStore(str(tmp_path / "meeting"), world_size, 30)
    if kind == "file":
        store: Store = FileStore(str(tmp_path / "store"), world_size, 30)
    elif kind == "local":
        store = LocalStore(str(tmp_path / "store"), 30)
    elif rank == 0:
        server = TCPStore("localhost", 0, world_size, True, 30, wait_for_ranks=False)
        meeting.set("port", str(server.port))
        store = server
    else:
        store = TCPStore("localhost", int(meeting.get("port")), world_size, False, 30)
    store.set(f"from {rank}", str(rank))
    values = store.multi_get([f"from {other}" for other in range(world_size)])
    assert values == [str(other).encode() for other in range(world_size)]
    for _ in range(50):
        store.add("sum", rank + 1)
    store.barrier("added", world_size)
    assert store.add("sum", 0) == 50 * sum(range(1, world_size + 1))
    store.barrier("read", world_size)
    if rank == 0:
        for other in range(1, world_size):
            store.queue_push("work", str(other))
    else:
        store.append("done", store.queue_pop("work"))
    store.barrier("worked", world_size)
    assert sorted(store.get("done").decode()) == [str(other) for other in range(1, world_size)]
    store.barrier("done", world_size)  # before the server goes
    meeting.barrier("end", world_size)
    store.close()
    meeting.close()


@pytest.mark.ranks(3)
def test_a_local_store_is_served_by_whoever_is_left(rank: int, world_size: int, tmp_path: Path) -> None:
    """Each comes and goes as it likes; who comes when the one that serves leaves, serves the next."""
    for _ in range(200):
        store = LocalStore(str(tmp_path), 20)
        store.close()


FORK = """
import os, sys
from shim.core.job.stores import TCPStore
server = TCPStore("localhost", 0, 1, True, 20)
client = TCPStore("localhost", server.port, 1, False, 20)
child = os.fork()
if child == 0:
    client.set("child", "1")          # over a connection of its own
    assert server.get("parent") == b"2"
    sys.exit(0)
client.set("parent", "2")
assert client.get("child") == b"1"
assert os.waitpid(child, 0)[1] == 0
assert client.get("child") == b"1"
ready, go = os.pipe()
child = os.fork()                     # one that outlives the server does not keep it
if child == 0:
    os.read(ready, 1)
    try:
        client.get("child")
    except ConnectionError as error:
        assert "is gone" in str(error), error
        os._exit(0)
    os._exit(1)
server.close()
os.write(go, b"x")
assert os.waitpid(child, 0)[1] == 0
print("well")
"""

END = """
from shim.core.job.stores import TCPStore
server = TCPStore("localhost", 0, 1, True, 20)
print(server.port, flush=True)
server.get("end")
"""


def test_a_forked_child_uses_the_store_and_does_not_keep_the_server() -> None:
    ended = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("well\n", "", 0)


@pytest.mark.parametrize("end", ["well", "killed"])
def test_a_server_ends_with_its_process(end: str) -> None:
    with subprocess.Popen([sys.executable, "-c", END], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        client = TCPStore("localhost", int(process.stdout.readline()), timeout=30)
        waiting = in_thread(lambda: client.get("absent"))
        client.set("key", "value")
        if end == "well":
            client.set("end", "1")
        else:
            process.kill()
        assert isinstance(waiting(), StoreLostError)
    assert process.returncode == (0 if end == "well" else -9)
    client.close()
