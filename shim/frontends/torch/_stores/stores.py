"""torch's stores, over core's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from operator import index
from typing import Any, TypeVar

from shim.core.callers import Caller
from shim.core.job import stores
from shim.errors import ShimError, UnsupportedError
from shim.frontends.torch._calls.options import duration_of
from shim.frontends.torch._errors import ArgumentTypeError, torch_function
from shim.frontends.torch._stores.foreign import ForeignStore

_T = TypeVar("_T")
_FIVE_MINUTES = timedelta(seconds=300)


class Store:
    """Keys, values and queues that processes share; its subclasses say where they lie.

    A class of the user's may derive from it and define the methods that are used. A timeout of zero does not wait.
    Raises: DistStoreError when a key does not come in time, DistNetworkError when the server is gone.
    Deviates: torch treats a timeout of zero as no timeout and waits forever.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.Store
    """

    _core: stores.Store | None = None
    _timeout = _FIVE_MINUTES  # of a class of the user's

    def __init__(self) -> None:
        pass

    @property
    def timeout(self) -> timedelta:
        """How long ``get`` and ``wait`` wait."""
        return self._timeout if self._core is None else timedelta(seconds=self._core.timeout)

    def set_timeout(self, timeout: timedelta, /) -> None:
        """Wait *timeout* from now on."""
        seconds = _seconds(timeout)
        if self._core is None:
            self._timeout = timedelta(seconds=seconds)
        else:
            self._core.set_timeout(seconds)

    def set(self, key: str, value: str | bytes, /) -> None:
        """Put *value* under *key*, in place of what was there."""
        self._ask("set", lambda core: core.set(_key(key), _value(value)))

    def get(self, key: str, /) -> bytes:
        """Wait for *key* and return its value."""
        return self._ask("get", lambda core: core.get(_key(key)))

    def add(self, key: str, amount: int, /) -> int:
        """Add *amount* to the number under *key*, 0 where there is none, and return the sum.

        Raises: ValueError where something else is stored.
        """
        return self._ask("add", lambda core: core.add(_key(key), _amount(amount)))

    def append(self, key: str, value: str | bytes, /) -> None:
        """Put *value* after what is under *key*."""
        self._ask("append", lambda core: core.append(_key(key), _value(value)))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes, /) -> bytes:
        """Put *desired* under *key* if *expected* is there, or is empty and nothing is there; return what is there now.

        Where nothing is, *expected* is returned.
        """
        return self._ask("compare_set", lambda core: core.compare_set(_key(key), _value(expected), _value(desired)))

    def delete_key(self, key: str, /) -> bool:
        """Remove *key* and tell whether it was there."""
        return self._ask("delete_key", lambda core: core.delete_key(_key(key)))

    def check(self, keys: Sequence[str], /) -> bool:
        """Tell whether all *keys* are there."""
        return self._ask("check", lambda core: core.check(_keys(keys)))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None, /) -> None:
        """Wait until all *keys* are there, at most *timeout* (None: the store's)."""
        self._ask("wait", lambda core: core.wait(_keys(keys), _limit(timeout)))

    def num_keys(self) -> int:
        """Return the number of keys that have a value."""
        return self._ask("num_keys", lambda core: core.num_keys())

    def list_keys(self) -> list[str]:
        """Return the keys that have a value, in no particular order."""
        return self._ask("list_keys", lambda core: core.list_keys())

    def multi_get(self, keys: Sequence[str], /) -> list[bytes]:
        """Wait for all *keys* and return their values."""
        return self._ask("multi_get", lambda core: core.multi_get(_keys(keys)))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes], /) -> None:
        """Put each of *values* under its one of *keys*, all at once."""
        self._ask("multi_set", lambda core: core.multi_set(_keys(keys), [_value(value) for value in values]))

    def queue_push(self, key: str, value: str | bytes, /) -> None:
        """Put *value* at the end of the queue of *key*."""
        self._ask("queue_push", lambda core: core.queue_push(_key(key), _value(value)))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value from the queue of *key*, waiting for one if *block*.

        Raises: QueueEmptyError where there is none and the caller does not wait.
        """
        return self._ask("queue_pop", lambda core: core.queue_pop(_key(key), bool(block)))

    def queue_len(self, key: str, /) -> int:
        """Return the number of values in the queue of *key*."""
        return self._ask("queue_len", lambda core: core.queue_len(_key(key)))

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until *world_size* callers wait under *key*, at most *timeout* (None: the store's).

        Deviates: a *key* can be reused; in torch, the second use of a key lets everyone pass.
        """
        self._ask("barrier", lambda core: core.barrier(_key(key), _amount(world_size), _limit(timeout)))

    def has_extended_api(self) -> bool:
        """Tell whether there are ``append``, ``multi_get`` and ``multi_set``, which is always so."""
        return self._ask("has_extended_api", lambda core: isinstance(core, stores.Store))

    def clone(self) -> Store:
        """Return another store with the same content, for use in another thread."""
        return show(self._ask("clone", lambda core: core.clone()))

    def _ask(self, method: str, question: Callable[[stores.Store], _T]) -> _T:
        """Return what core's store answers, or raise what torch documents."""
        caller = torch_function(f"{type(self).__name__}.{method}")
        if self._core is None:
            raise caller.explain(UnsupportedError("the torch frontend's Store defines no methods; its subclasses do"))
        return _explained(caller, lambda: question(self._core))  # type: ignore[arg-type]  # it is not None


class HashStore(Store):
    """A store for the threads of one process.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.HashStore
    """

    def __init__(self) -> None:
        self._core = stores.HashStore()


class FileStore(Store):
    """A store in the file *file_name*, which the last of *world_size* processes removes (-1: nobody does).

    Deviates: it has queues too; torch raises NotImplementedError for them.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.FileStore
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        caller = torch_function("FileStore")
        self._path = _text("file_name", file_name)
        self._core = _explained(caller, lambda: stores.FileStore(self._path, _amount(world_size)))

    @property
    def path(self) -> str:
        """The name of its file, as it was given."""
        return self._path


class TCPStore(Store):
    """A store that the process with *is_master* serves on *port* of *host_name*; the others wait up to *timeout* for it.

    With *wait_for_workers* the server waits for *world_size* stores. With *multi_tenant*, servers of a process on one
    port are one. *master_listen_fd* is a listening socket to take over. Port 0 takes a free one.
    Deviates: *use_libuv* changes nothing but the answer of ``libuvBackend``: there is one kind of server.
    Deviates: for a loopback *host_name* the server cannot be reached from other hosts; torch's can.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.TCPStore
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _FIVE_MINUTES,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        caller = torch_function("TCPStore")
        self._host = _text("host_name", host_name)
        self._use_libuv = bool(use_libuv)
        core = _explained(
            caller,
            lambda: stores.TCPStore(
                self._host,
                _amount(port),
                None if world_size is None else _amount(world_size),
                bool(is_master),
                _seconds(timeout),
                bool(wait_for_workers),
                None if master_listen_fd is None else _amount(master_listen_fd),
                bool(multi_tenant),
            ),
        )
        self._core = core
        self._port = core.port

    @property
    def host(self) -> str:
        """The name of the host whose process serves it."""
        return self._host

    @property
    def port(self) -> int:
        """The port it is served on."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """What *use_libuv* was."""
        return self._use_libuv


class PrefixStore(Store):
    """The keys of *store* that begin with *prefix* and a slash; *store* may be any object with the methods of a Store.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.PrefixStore
    """

    def __init__(self, prefix: str, store: Any) -> None:
        self._underlying = store
        self._core = stores.PrefixStore(_text("prefix", prefix), core_of(store))

    @property
    def underlying_store(self) -> Any:
        """The store that it is a part of."""
        return self._underlying


def core_of(store: Any) -> stores.Store:
    """Return core's store for one of ours, of torch's, or of the user's."""
    if isinstance(store, Store) and store._core is not None:
        return store._core
    if callable(getattr(store, "set", None)) and callable(getattr(store, "get", None)):
        return ForeignStore(store)
    raise ArgumentTypeError(f"torch.distributed: store must be a Store, got {store!r}")


def show(core: stores.Store) -> Store:
    """Return a store of torch's kind over a store of core's."""
    if isinstance(core, stores.PrefixStore):
        return PrefixStore(core.prefix, show(core.underlying))
    if isinstance(core, ForeignStore):
        return core.foreign  # type: ignore[no-any-return]  # its class is its owner's
    shown: Store = object.__new__(_CLASSES.get(type(core), Store))
    shown._core = core
    if isinstance(shown, TCPStore) and isinstance(core, stores.TCPStore):
        shown._host, shown._port, shown._use_libuv = core.host, core.port, True
    if isinstance(shown, FileStore) and isinstance(core, stores.FileStore):
        shown._path = core.path
    return shown


_CLASSES: dict[type[stores.Store], type[Store]] = {
    stores.HashStore: HashStore,
    stores.FileStore: FileStore,
    stores.TCPStore: TCPStore,
}


def _explained(caller: Caller, call: Callable[[], _T]) -> _T:
    try:
        return call()
    except ShimError as error:
        raise caller.explain(error) from None


def _key(key: Any) -> str | bytes:
    if isinstance(key, (str, bytes)):
        return key
    raise ArgumentTypeError(f"a key must be text, got {key!r}")


def _keys(keys: Any) -> list[str | bytes]:
    if isinstance(keys, (list, tuple)):
        return [_key(key) for key in keys]
    raise ArgumentTypeError(f"keys must be a list of text, got {keys!r}")


def _value(value: Any) -> str | bytes | bytearray:
    if isinstance(value, (str, bytes, bytearray)):
        return value
    raise ArgumentTypeError(f"a value must be text or bytes, got {value!r}")


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ArgumentTypeError(f"torch.distributed: {name} must be text, got {value!r}")


def _amount(number: Any) -> int:
    try:
        if -(2**63) <= index(number) < 2**63:
            return index(number)
    except TypeError:
        pass
    raise ArgumentTypeError(f"a number must be an integer of 64 bits, got {number!r}")


def _seconds(timeout: Any) -> float:
    timeout = duration_of(timeout)
    if isinstance(timeout, timedelta):
        return timeout.total_seconds()
    raise ArgumentTypeError(f"timeout must be a datetime.timedelta, got {timeout!r}")


def _limit(timeout: Any) -> float | None:
    return None if timeout is None else _seconds(timeout)
