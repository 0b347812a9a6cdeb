"""How a URL becomes a store, a rank and a world size, for each scheme."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError, StateError
from shim.frontends.torch._errors import ArgumentAssertionError, torch_function
from shim.frontends.torch._stores.stores import FileStore, Store, TCPStore

_Triplet = tuple[Any, int, int]
_Handler = Callable[..., Iterator[_Triplet]]
_ME = torch_function("rendezvous")


def register(caller: Caller, scheme: str, handler: _Handler) -> None:
    """Do what ``register_rendezvous_handler`` documents."""
    if scheme in _handlers:
        raise caller.explain(StateError(f"scheme must be a new one, got {scheme!r}, which has a handler"))
    _handlers[scheme] = handler


def is_built_in(caller: Caller, url: str) -> bool:
    """Tell whether *url* has a scheme of torch's own. Raises an error for one that nobody has registered."""
    scheme = urlsplit(url).scheme
    if scheme not in _handlers:
        raise caller.explain(
            StateError(f"init_method must begin with {', '.join(f'{one}://' for one in _handlers)}, got {url!r}")
        )
    return _handlers[scheme] in _BUILT_IN


def meet(caller: Caller, url: Any, rank: Any, world_size: Any, options: dict[str, Any]) -> Iterator[_Triplet]:
    """Do what ``rendezvous`` documents."""
    if not isinstance(url, (str, bytes)):
        raise caller.explain(StateError(f"url must be text, got {url!r}"))
    for name, number in (("rank", rank), ("world_size", world_size)):
        if not isinstance(number, int):
            raise caller.explain(StateError(f"{name} must be an integer, got {number!r}"))
    parts = urlsplit(url.decode() if isinstance(url, bytes) else url)
    if parts.scheme not in _handlers:
        raise caller.explain(StateError(f"url must have a scheme of {', '.join(_handlers)}, got {url!r}"))
    given = {"rank": rank, "world_size": world_size}
    asked = _query(parts)
    if any(number != -1 for number in given.values()):
        if "rank" in asked or "world_size" in asked:
            raise caller.explain(
                ArgumentAssertionError(f"rank and world_size must not be given both here and in the url, got {url!r}")
            )
        asked |= {name: str(number) for name, number in given.items() if number != -1}
        parts = parts._replace(query="&".join(f"{name}={value}" for name, value in asked.items()))
    return _handlers[parts.scheme](urlunsplit(parts), **options)


def _file(url: str, timeout: timedelta | None = None) -> Iterator[_Triplet]:
    """Meet at a file. Its store has torch's own timeout, unless one is given."""
    parts = urlsplit(url)
    if not parts.path:
        raise _refusal("file", "url must name a file, like file:///path")
    rank, size = _number(parts, "rank"), _number(parts, "world_size")
    store = FileStore(parts.path, size)
    if timeout is not None:
        store.set_timeout(timeout)
    yield store, rank, size
    raise _once("file")


def _tcp(url: str, timeout: timedelta = timedelta(seconds=groups.DEFAULT_TIMEOUT)) -> Iterator[_Triplet]:
    """Meet at a port of rank 0."""
    parts = urlsplit(url)
    if parts.hostname is None or _port(parts) is None:
        raise _refusal("tcp", "url must name a host and a port, like tcp://localhost:29500")
    rank, size = _number(parts, "rank"), _number(parts, "world_size")
    yield _served(parts.hostname, _port(parts) or 0, rank, size, timeout), rank, size
    raise _once("tcp")


def _env(url: str, timeout: timedelta = timedelta(seconds=groups.DEFAULT_TIMEOUT)) -> Iterator[_Triplet]:
    """Meet where the environment says."""
    asked = _query(urlsplit(url))
    rank = _count("rank", asked["rank"]) if "rank" in asked else _counted("RANK")
    size = _count("world_size", asked["world_size"]) if "world_size" in asked else _counted("WORLD_SIZE")
    yield _served(_variable("MASTER_ADDR"), _counted("MASTER_PORT"), rank, size, timeout), rank, size
    raise _once("env")


def _served(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Store:
    """Return the store at *port* of *host*: torchrun's, where it serves one for its ranks, else rank 0's."""
    serves = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    return TCPStore(host, port, size, serves, timeout, multi_tenant=True)


def _query(parts: SplitResult) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in parts.query.split("&") if pair)
    return {name: value for name, _, value in pairs}


def _number(parts: SplitResult, name: str) -> int:
    value = _query(parts).get(name, "")
    if not value.isdecimal():
        raise _refusal(parts.scheme, f"{name} must be given, as a number, got {value!r}")
    return int(value)


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        return None


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise _refusal("env", f"{name} must be set in the environment")
    return value


def _counted(name: str) -> int:
    return _count(f"{name} in the environment", _variable(name))


def _count(name: str, value: str) -> int:
    if not value.isdecimal():
        raise _refusal("env", f"{name} must be a number, got {value!r}")
    return int(value)


def _refusal(scheme: str, what: str) -> ShimError:
    return _ME.explain(ArgumentError(f"{scheme}: {what}"))


def _once(scheme: str) -> ShimError:
    return _ME.explain(StateError(f"{scheme}: the ranks have met, and cannot meet again"))


_handlers: dict[str, _Handler] = {"tcp": _tcp, "env": _env, "file": _file}
_BUILT_IN = (_tcp, _env, _file)
