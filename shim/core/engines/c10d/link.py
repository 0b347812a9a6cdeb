"""The engine over gloo, as torch's c10d has it, and the connections of a group.

A receive of gloo has to be of the size that is sent: another one ends the process. The engine sees to that.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from shim.core.control import Control
from shim.core.engines.c10d.pending import CollectiveTransfer, WaitedTransfer, Waiter
from shim.core.engines.network.engine import NetworkEngine
from shim.core.engines.network.link import HEADER_BYTES, FailedTransfer, Link, LinkError, Pending
from shim.core.engines.network.meeting import key_among
from shim.core.engines.network.store import ControlKeys, torch_store
from shim.core.engines.network.threads import begin_thread
from shim.core.reduce_ops import ReduceOp
from shim.errors import StateError

if TYPE_CHECKING:
    from shim.core.engines.place import Place

_FOREVER = timedelta(days=365)  # the engine has the timeouts, and gloo ends all connections at one of its own
_HEADER_TAG, _PART_TAG, _FIRST_TAG = 1, 2, 3
_BYE = b"\xff"  # the first byte of the header that ends a taker
_DTYPES = {
    "float32": "float32",
    "float64": "float64",
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "int64": "int64",
}
_OPS = {ReduceOp.SUM: "SUM", ReduceOp.PRODUCT: "PRODUCT", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX"}


class GlooLink(Link):
    """Connects *members*, ranks of the world, in their order through the store *control* under *key*, bound to *address*.

    Every two ranks have a connection, and each rank a thread that takes headers.
    """

    name = "gloo"

    def __init__(self, control: Control, key: str, members: Sequence[int], address: str, timeout: float) -> None:
        import torch
        from torch.distributed import ProcessGroupGloo

        self._torch: Any = torch
        self.rank, self.size = members.index(control.rank), len(members)
        self._control, self._members, self._topic = control, members, f"gloo {key}"
        options: Any = ProcessGroupGloo._Options()  # type: ignore[attr-defined]  # as torch's own code makes them
        options._devices = [ProcessGroupGloo.create_device(hostname=address)]
        options._timeout = _FOREVER
        options._threads = 2
        self._keys = ControlKeys(control, self._topic)
        self._store: Any = torch_store(self._keys, timeout)
        self._group: Any = self._made(lambda: ProcessGroupGloo(self._store, self.rank, self.size, options), timeout)
        self._parts = Waiter("shim gloo parts")
        self._messages = Waiter("shim gloo messages")
        self._takes_headers = False
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._right = members[(self.rank + 1) % self.size]
        self._is_awaited = threading.Event()  # set when the right neighbour needs nothing more of this rank
        self._is_open = True
        self._forget_gone: Callable[[], None] = _nothing
        control.listen(self._topic, self._say_bye)

    def _made(self, make: Callable[[], Any], timeout: float) -> Any:
        """Return what *make* returns, which waits for all members. Raises LinkError where it cannot, or one of them goes meanwhile."""
        made: list[Any] = []

        def connect() -> None:
            try:
                made.append(make())
            except Exception as error:
                made.append(LinkError(str(error).partition("\n")[0]))

        thread = begin_thread("shim gloo connecting", connect)
        deadline = time.monotonic() + timeout
        while thread.is_alive():
            if time.monotonic() > deadline:
                raise LinkError(f"gloo has not connected the ranks within {timeout:g} s")
            thread.join(0.02)
            for member in self._members:
                if thread.is_alive() and self._control.is_gone(member):
                    raise LinkError(f"rank {member}{self._control.ending_of(member)}")
        if isinstance(made[0], LinkError):
            raise made[0]
        return made[0]

    def all_gather(self, outputs: memoryview, mine: memoryview) -> Pending:
        to, source = self._tensor(outputs), self._tensor(mine)
        return self._collective(lambda: self._group._allgather_base(to, source), (outputs, mine))

    def broadcast(self, data: memoryview, root: int) -> Pending:
        from torch.distributed import BroadcastOptions

        tensor, options = self._tensor(data), BroadcastOptions()
        options.rootRank, options.rootTensor = root, 0
        return self._collective(lambda: self._group.broadcast([tensor], options), (data,))

    def all_to_all(self, outputs: Sequence[memoryview], inputs: Sequence[memoryview]) -> Pending:
        """See ``Link``. gloo's own takes one buffer on each side, and these may lie anywhere."""

        def begin() -> Iterator[Any]:
            for step in range(1, self.size):
                source, target = (self.rank - step) % self.size, (self.rank + step) % self.size
                if len(outputs[source]):
                    yield self._group.recv([self._tensor(outputs[source])], source, _PART_TAG)
                if len(inputs[target]):
                    yield self._group.send([self._tensor(inputs[target])], target, _PART_TAG)

        if outputs[self.rank] is not inputs[self.rank]:
            outputs[self.rank][:] = inputs[self.rank]
        return _waited(self._parts, begin, (list(outputs), list(inputs)))

    def reduces(self, dtype: str, op: ReduceOp) -> bool:
        """See ``Link``. Of floats, gloo sums those of 16 bits in their own precision, and NaN does not win in its MIN and MAX."""
        return (
            dtype in _DTYPES and op in _OPS and not (dtype.startswith("float") and op in (ReduceOp.MIN, ReduceOp.MAX))
        )

    def all_reduce(self, data: memoryview, dtype: str, op: ReduceOp) -> Pending:
        from torch.distributed import AllreduceOptions
        from torch.distributed import ReduceOp as TorchOp

        tensor = self._tensor(data).view(getattr(self._torch, _DTYPES[dtype]))
        options = AllreduceOptions()
        options.reduceOp = getattr(TorchOp, _OPS[op])
        return self._collective(lambda: self._group.allreduce([tensor], options), (data,))

    def send(self, data: memoryview, peer: int, number: int) -> Pending:
        return self._message(self._group.send, data, peer, number)

    def receive(self, data: memoryview, peer: int, number: int) -> Pending:
        return self._message(self._group.recv, data, peer, number)

    def send_header(self, header: bytes, peer: int) -> Pending:
        copied = memoryview(bytearray(header))
        return _waited(self._messages, lambda: [self._group.send([self._tensor(copied)], peer, _HEADER_TAG)], (copied,))

    def take_headers(self, taker: Callable[[int, bytes], None]) -> None:
        if self.size > 1:
            self._takes_headers = True
            self._threads.append(begin_thread("shim gloo headers", _take, self._group, taker))

    def close(self, is_clean: bool) -> None:
        """See ``Link``. The connections stay until the right neighbour, which takes headers to the end, needs them no more."""
        if not self._is_open:
            return
        self._is_open = False
        with suppress(StateError):
            self._keys.close()
        if self._takes_headers:
            with suppress(StateError):
                self._control.tell(self._topic, [self._members[self.rank - 1]], b"")
        else:
            self._is_awaited.set()  # nor does any other rank take headers here
        self._parts.close()
        group = self._group  # which a neighbour's thread may let go meanwhile
        if (
            not is_clean and group is not None
        ):  # its destructor would wait for transfers that never end; the process's end does not
            group.abort()
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
            self._is_awaited.set()
        for link in list(_lingering):
            if link._group is None and not any(thread.is_alive() for thread in link._threads):
                _lingering.discard(link)
        _lingering.add(self)
        self._forget_gone = self._control.when_gone(self._let_neighbour_go)
        self._drop_if_over()

    def finish(self, seconds: float) -> None:
        """See ``Link``. The connections of all groups that have closed since go with the control connections."""
        deadline = time.monotonic() + seconds
        for link in [link for link in list(_lingering) if link._control is self._control]:
            link._is_awaited.wait(max(0.0, deadline - time.monotonic()))
            link._drop_if_over()
            for thread in link._threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            _lingering.discard(link)

    def _say_bye(self, member: int, said: bytes) -> None:
        """End the thread of the right neighbour that takes headers, as *member* asks for."""
        del said
        with self._lock:
            group = self._group
            if member != self._right or group is None or self._is_awaited.is_set():
                return
            bye = memoryview(bytearray(_BYE.ljust(HEADER_BYTES, b"\0")))
            with suppress(RuntimeError):  # it has gone
                work = group.send([self._tensor(bye)], (self.rank + 1) % self.size, _HEADER_TAG)
                self._messages.see_end(WaitedTransfer([work], (bye, group)))
            self._is_awaited.set()
        self._drop_if_over()

    def _let_neighbour_go(self, member: int) -> None:
        if member == self._right:
            self._is_awaited.set()
            self._drop_if_over()

    def _drop_if_over(self) -> None:
        with self._lock:
            if self._is_open or self._group is None or not (self._is_awaited.is_set() or self.size == 1):
                return
            self._group = None
        self._messages.close()
        with suppress(StateError):
            self._forget_gone()
            self._forget_gone = _nothing  # it holds this object
            self._control.forget(self._topic)

    def _message(self, move: Callable[..., Any], data: memoryview, peer: int, number: int) -> Pending:
        return _waited(self._messages, lambda: [move([self._tensor(data)], peer, _FIRST_TAG + number)], (data,))

    def _collective(self, begin: Callable[[], Any], kept: Sequence[memoryview]) -> Pending:
        try:
            work = begin()
        except RuntimeError as error:  # a connection is gone
            return FailedTransfer(error)
        return CollectiveTransfer(work, kept)

    def _tensor(self, data: memoryview) -> Any:
        """Return a tensor over *data* that does not keep it: torch's threads hold theirs for a moment after the end."""
        torch = self._torch
        if not len(data):
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(_unowned(_address(data), len(data), _WRITABLE), dtype=torch.uint8)


_lingering: set[GlooLink] = set()  # closed, and still awaited by their right neighbours

_unowned = ctypes.pythonapi.PyMemoryView_FromMemory
_unowned.restype, _unowned.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_WRITABLE = 0x200  # PyBUF_WRITE


def _waited(waiter: Waiter, begin: Callable[[], Iterable[Any]], kept: Sequence[Any]) -> Pending:
    """Have *waiter* see the end of the works that *begin* returns."""
    try:
        return waiter.see_end(WaitedTransfer(list(begin()), kept))
    except RuntimeError as error:  # a connection is gone
        return FailedTransfer(error)


def _nothing() -> None:
    """Forget no handler."""


def _address(data: memoryview) -> int:
    return int(np.frombuffer(data, np.uint8).ctypes.data)


def _take(group: Any, taker: Callable[[int, bytes], None]) -> None:
    """Hand on headers until the left neighbour says that it closes."""
    import torch

    room = torch.empty(HEADER_BYTES, dtype=torch.uint8)
    while True:
        try:
            work = group.recv_anysource([room], _HEADER_TAG)
            work.wait()
        except RuntimeError:  # the connections are gone
            return
        header = room.numpy().tobytes()
        if header[:1] == _BYE:
            return
        taker(work._source_rank(), header)


def gloo_link(place: Place, key: str, ranks: tuple[int, ...]) -> GlooLink:
    """Connect the world ranks *ranks*, this one among them, under a *key* that only they use."""
    control = place.control
    assert control is not None
    address = control.peers[control.rank].address or "127.0.0.1"
    return GlooLink(control, key, ranks, address, place.timeout)


class C10dEngine(NetworkEngine):
    name = "c10d"

    def __init__(self, place: Place) -> None:
        super().__init__(place, lambda ranks: gloo_link(place, key_among(place, ranks), ranks))
