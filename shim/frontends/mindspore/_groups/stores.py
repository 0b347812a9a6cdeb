"""``TCPStore``, which ``mint.distributed`` and ``ops.communication`` have alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.core.callers import Caller
from shim.core.job import stores
from shim.errors import ArgumentError, ShimError, UnsupportedError
from shim.frontends.mindspore._errors import ArgumentTypeError, NotANumberError

_MAKE = Caller("mindspore TCPStore")
_ADD = Caller(
    "mindspore TCPStore.add",
    errors={ArgumentTypeError: ArgumentTypeError, ArgumentError: NotANumberError},
)
_SET = Caller("mindspore TCPStore.set")
_GET = Caller("mindspore TCPStore.get")
_DELETE_KEY = Caller("mindspore TCPStore.delete_key")


class TCPStore:
    """A table of values that the process with *is_master* serves on *port* of *host_name*, to itself and the others.

    What waits, waits *timeout*; with *wait_for_workers* the server waits for *world_size* stores, its own included.
    Raises: TypeError for wrong types; ValueError for a *port* or *world_size* that is none; RuntimeError if nobody serves.
    Deviates: honours *multi_tenant* and *master_listen_fd*, takes host names; *use_libuv*=False raises UnsupportedError.
    See: https://www.mindspore.cn/docs/en/stable/api_python/mint/mindspore.mint.distributed.TCPStore.html
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        _check(_MAKE, "host_name", host_name, str)
        _check(_MAKE, "port", port, int)
        _check(_MAKE, "world_size", 1 if world_size is None else world_size, int)
        _check(_MAKE, "is_master", is_master, bool)
        _check(_MAKE, "timeout", timeout, timedelta)
        _check(_MAKE, "wait_for_workers", wait_for_workers, bool)
        _check(_MAKE, "multi_tenant", multi_tenant, bool)
        _check(_MAKE, "master_listen_fd", 0 if master_listen_fd is None else master_listen_fd, int)
        if world_size is not None and world_size < 1:
            raise _MAKE.explain(ArgumentError(f"world_size must be at least 1, got {world_size}"))
        if use_libuv is not True:
            raise _MAKE.explain(UnsupportedError("use_libuv means nothing to this store\nLeave it out."))
        try:
            self._store = stores.TCPStore(
                host_name,
                port,
                world_size,
                is_master,
                timeout.total_seconds(),
                wait_for_workers,
                master_listen_fd,
                multi_tenant,
            )
        except ShimError as error:
            raise _MAKE.explain(error) from None
        self.host = host_name
        self.port = self._store.port

    def add(self, key: str, amount: int) -> int:
        """Add *amount* to the number under *key*, 0 where there is none, and return the sum.

        Raises: TypeError for wrong types; RuntimeError if what is there is no number.
        """
        _check(_ADD, "key", key, str)
        _check(_ADD, "amount", amount, int)
        return int(_answer(_ADD, self._store.add, key, amount))

    def set(self, key: str, value: str | bytes) -> None:
        """Put *value* under *key*, in place of what was there.

        Raises: TypeError for wrong types.
        """
        _check(_SET, "key", key, str)
        _check(_SET, "value", value, str, bytes)
        _answer(_SET, self._store.set, key, value)

    def get(self, key: str) -> bytes:
        """Wait for *key* and return its value.

        Raises: TypeError if *key* is no str; RuntimeError if it does not come in time.
        """
        _check(_GET, "key", key, str)
        return bytes(_answer(_GET, self._store.get, key))

    def delete_key(self, key: str) -> bool:
        """Remove *key*, and tell whether it was there.

        Raises: TypeError if *key* is no str.
        """
        _check(_DELETE_KEY, "key", key, str)
        return bool(_answer(_DELETE_KEY, self._store.delete_key, key))


def _check(caller: Caller, parameter: str, value: object, *kinds: type) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise caller.explain(ArgumentTypeError(f"{parameter} must be {wanted}, got {type(value).__name__}"))


def _answer(caller: Caller, method: Any, *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except ShimError as error:
        raise caller.explain(error) from None
