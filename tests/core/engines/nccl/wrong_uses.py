"""Uses of NCCL and CUDA that the real ones punish by a hang, a crash or destroyed data: each function is one, and ends its process.

``python wrong_uses.py`` runs each in a fork and prints, as JSON, how it ended and what it said.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_void_p

from fake_device import Stream, load

load()

from shim.core.engines.nccl.driver import Event, IpcHandle, driver  # noqa: E402  # the fakes come first
from shim.core.engines.nccl.library import Nccl, UniqueId, library  # noqa: E402

FLOAT, BYTES = 7, 4
HOST = ctypes.create_string_buffer(64)


@contextmanager
def communicator(number: int = 0) -> Iterator[tuple[Nccl, c_void_p, int]]:
    """Give a communicator of one rank, on whose device a context is current, and 64 bytes there."""
    nccl, cuda, identity, made, at = library(), driver(), UniqueId(), c_void_p(), c_void_p()
    with cuda.on(number):
        nccl.call("ncclGetUniqueId", byref(identity))
        nccl.call("ncclCommInitRank", byref(made), 1, identity, 0)
        cuda.call("cuMemAlloc_v2", byref(at), 64)
        yield nccl, made, at.value or 0


def sum_up(nccl: Nccl, comm: c_void_p, source: int, target: int, count: int = 4, stream: object = None) -> None:
    nccl.call("ncclAllReduce", source, target, count, FLOAT, 0, comm, stream)


def host_memory() -> None:
    with communicator() as (nccl, comm, at):
        sum_up(nccl, comm, ctypes.addressof(HOST), at)


def too_many_elements() -> None:
    with communicator() as (nccl, comm, at):
        sum_up(nccl, comm, at, at, count=17)


def memory_of_another_device() -> None:
    with communicator(1) as (_, _, elsewhere), communicator() as (nccl, comm, at):
        sum_up(nccl, comm, elsewhere, at)


def no_context() -> None:
    with communicator() as (nccl, comm, at):
        pass
    sum_up(nccl, comm, at, at)


def context_of_another_device() -> None:
    with communicator() as (nccl, comm, at), driver().on(1):
        sum_up(nccl, comm, at, at)


def destroyed_communicator() -> None:
    with communicator() as (nccl, comm, at):
        nccl.call("ncclCommDestroy", comm)
        sum_up(nccl, comm, at, at)


def aborted_communicator() -> None:
    with communicator() as (nccl, comm, at):
        nccl.call("ncclCommAbort", comm)
        sum_up(nccl, comm, at, at)


def destroyed_stream() -> None:
    with communicator() as (nccl, comm, at):
        stream = Stream(0)
        driver().call("cuStreamDestroy_v2", stream.handle)
        sum_up(nccl, comm, at, at, stream=stream.handle)


def stream_of_another_device() -> None:
    with communicator() as (nccl, comm, at):
        sum_up(nccl, comm, at, at, stream=Stream(1).handle)


def message_to_itself_alone() -> None:
    with communicator() as (nccl, comm, at):
        nccl.call("ncclSend", at, 4, FLOAT, 0, comm, None)


def destroyed_while_busy() -> None:
    with communicator() as (nccl, comm, at):
        wait = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: threading.Event().wait())
        load().cuLaunchHostFunc(None, wait, None)
        sum_up(nccl, comm, at, at)
        nccl.call("ncclCommDestroy", comm)


def identity_used_again() -> None:
    with communicator() as (nccl, _, _):
        identity, made = UniqueId(), c_void_p()
        nccl.call("ncclGetUniqueId", byref(identity))
        for _ in range(2):
            nccl.call("ncclCommInitRank", byref(made), 1, identity, 0)


def event_of_another_device() -> None:
    with driver().on(1):
        event = Event(driver())
    with driver().on(0):
        driver().call("cuEventRecord", event.handle, Stream(0).handle)


def stream_without_a_context() -> None:
    load().cuStreamQuery(Stream(0).handle)


def two_threads_in_a_communicator() -> None:
    with communicator() as (nccl, comm, at), nccl.group():
        sum_up(nccl, comm, at, at)

        def meanwhile() -> None:
            with driver().on(0):
                sum_up(nccl, comm, at, at)

        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()


def aborted_while_it_launches() -> None:
    os.environ["FAKE_NCCL_LAUNCHES_SLOWLY"] = "1"
    with communicator() as (nccl, comm, at):
        threading.Timer(0.1, nccl.call, ("ncclCommAbort", comm)).start()
        sum_up(nccl, comm, at, at)


def destroyed_reduce_op() -> None:
    with communicator() as (nccl, comm, _):
        op, factor = c_int(), ctypes.c_float(2.0)
        nccl.call("ncclRedOpCreatePreMulSum", byref(op), byref(factor), FLOAT, 1, comm)
        for _ in range(2):
            nccl.call("ncclRedOpDestroy", op, comm)


def two_ranks(body: Callable[[Nccl, int, c_void_p, int], None]) -> None:
    """Be both ranks of a communicator, each in a thread and on a device of its own."""
    nccl, cuda, identity = library(), driver(), UniqueId()
    nccl.call("ncclGetUniqueId", byref(identity))

    def be(rank: int) -> None:
        made, at = c_void_p(), c_void_p()
        with cuda.on(rank):
            nccl.call("ncclCommInitRank", byref(made), 2, identity, rank)
            cuda.call("cuMemAlloc_v2", byref(at), 64)
            body(nccl, rank, made, at.value or 0)
            cuda.call("cuCtxSynchronize")

    threads = [threading.Thread(target=be, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def different_counts() -> None:
    two_ranks(lambda nccl, rank, comm, at: sum_up(nccl, comm, at, at, count=4 + rank))


def different_sizes_of_a_message() -> None:
    def exchange(nccl: Nccl, rank: int, comm: c_void_p, at: int) -> None:
        nccl.call("ncclSend" if rank == 0 else "ncclRecv", at, 4 + rank, FLOAT, 1 - rank, comm, None)

    two_ranks(exchange)


def forked(body: Callable[[bytes], None]) -> None:
    """Export 64 bytes, and be another process too, which gets by what to open them."""
    cuda, at, handle = driver(), c_void_p(), IpcHandle()
    with cuda.on(0):
        cuda.call("cuMemAlloc_v2", byref(at), 64)
        cuda.call("cuIpcGetMemHandle", byref(handle), at)
        body(bytes(handle))
        cuda.call("cuMemFree_v2", at)


def freed_while_another_process_has_it_open() -> None:
    def open_elsewhere(handle: bytes) -> None:
        ours, theirs = os.pipe()
        if os.fork() == 0:
            there = c_void_p()
            with driver().on(0):
                driver().call("cuIpcOpenMemHandle_v2", byref(there), IpcHandle.from_buffer_copy(handle), 1)
            os.write(theirs, b"1")
            threading.Event().wait(5.0)
            os._exit(0)
        os.read(ours, 1)

    forked(open_elsewhere)


def opened_by_its_own_process() -> None:
    forked(
        lambda handle: driver().call("cuIpcOpenMemHandle_v2", byref(c_void_p()), IpcHandle.from_buffer_copy(handle), 1)
    )


def exported_memory_of_a_stream() -> None:
    cuda, at = driver(), c_void_p()
    with cuda.on(0):
        cuda.call("cuMemAllocAsync", byref(at), 64, None)
        cuda.call("cuIpcGetMemHandle", byref(IpcHandle()), at)


USES = {
    name: use for name, use in list(globals().items()) if callable(use) and getattr(use, "__module__", "") == __name__
}
for _name in ("communicator", "forked", "sum_up", "two_ranks"):
    del USES[_name]


def outcome_of(use: Callable[[], None]) -> tuple[int, str]:
    """Run *use* in a fork, and return how that ended, and what it said."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(theirs, 2)
        try:
            use()
        finally:
            os._exit(0)
    os.close(theirs)
    _, status = os.waitpid(child, 0)
    with os.fdopen(ours) as said:
        return os.waitstatus_to_exitcode(status), said.read()


if __name__ == "__main__":
    json.dump({name: outcome_of(use) for name, use in USES.items()}, sys.stdout)
