"""Who am I, and where are the others: read from explicit arguments or from a launcher's environment."""

from __future__ import annotations

import operator
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, parse_qs, urlsplit

from shim.core.hosts import require_one_host, require_this_host
from shim.core.launchers import BY_HAND, LAUNCHERS, Launcher
from shim.core.variables import Variables, checked_port
from shim.errors import ArgumentError, StateError

__all__ = ["Identity", "Meeting", "locate", "locate_at"]

_SCHEMES = ("env", "file", "tcp")


class Meeting(Protocol):
    """A store, of ours or of anyone else's: ``get`` waits for a key. Where it can also ``add``, it serves several times."""

    def set(self, key: str, value: str, /) -> object: ...
    def get(self, key: str, /) -> bytes | str: ...


@dataclass(frozen=True)
class Identity:
    """This process as a rank of the world; ``key`` names the job, the same string on all its ranks and on no others."""

    rank: int
    size: int
    key: str
    launcher: str


def locate(
    rank: int | None = None,
    world_size: int | None = None,
    init_method: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Identity:
    """Return this process's place in the world: from the arguments, and where they leave it open from *environment*.

    A process about which neither says anything is a world of its own. *init_method* is an ``env://``, ``file:///path``
    or ``tcp://host:port`` URL, which may say ``?rank=`` and ``world_size=``; no file is made and no port is bound.
    In msrun's scheduler, which is no rank, this ends the process with status 0, as MindSpore's own init does.
    Raises StateError for variables that contradict each other or lack one of their set, ArgumentError for values that
    are no rank, size or address, UnsupportedError for ranks on several hosts.
    """
    variables = Variables(environment)
    url = _checked_url(init_method)
    rank = _explicit(rank, "rank", url)
    world_size = _explicit(world_size, "world_size", url)
    launcher = _launcher_of(variables, rank, world_size)
    if launcher is not None and launcher.name == "msrun" and variables.get("MS_ROLE") == "MS_SCHED":
        raise SystemExit(0)
    if launcher is None:
        return _without_launcher(rank, world_size, url)
    me = rank if rank is not None else launcher.number(variables, launcher.rank)
    size = world_size if world_size is not None else launcher.number(variables, launcher.size)
    shown = (
        "" if rank is not None and world_size is not None else f" ({variables.shown(launcher.rank + launcher.size)})"
    )
    _check_range(me, size, shown)
    launcher.require_one_host(variables)
    key = _url_key(url)
    _check_port(variables)
    if size == 1:
        key = _own_key()
    return Identity(me, size, key or f"{launcher.name} {launcher.key(variables)}", launcher.name)


def locate_at(store: Meeting, rank: int, world_size: int) -> Identity:
    """Return this process's place in a world whose ranks all have *store* and know who they are.

    Rank 0 hears from all of them through *store* where they are, and tells them a name for the job that was never used
    before; each of them calls this as often as the others do. Raises ArgumentError for a rank or size that is none,
    UnsupportedError, on all ranks, for ranks on several hosts, and what *store* raises when a rank does not come.
    """
    rank, world_size = _integer(rank, "rank"), _integer(world_size, "world_size")
    _check_range(rank, world_size, "")
    if world_size == 1:
        return Identity(0, 1, _own_key(), "a store")
    turn = store.add(f"shim/rank {rank}", 1) if hasattr(store, "add") else 1
    if rank == 0:
        here = _this_host()
        hosts = {other: _said(store, f"shim/rank {other} of {turn}") for other in range(1, world_size)}
        away = [f"rank 0 is on {here}, and rank {other} on {host}" for other, host in hosts.items() if host != here]
        store.set(f"shim/job {turn}", " ".join([secrets.token_hex(16), *away[:1]]))
    else:
        store.set(f"shim/rank {rank} of {turn}", _this_host())
    name, _, away_from_rank_0 = _said(store, f"shim/job {turn}").partition(" ")
    require_one_host(not away_from_rank_0, away_from_rank_0)
    return Identity(rank, world_size, f"store {name}", "a store")


def _said(store: Meeting, key: str) -> str:
    value = store.get(key)
    return value if isinstance(value, str) else bytes(value).decode()


def _this_host() -> str:
    """Return the host's name, and what tells it from others of that name: containers on one host share the kernel's."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}".strip()


def _check_port(variables: Variables) -> None:
    """Refuse a port that none can be, even where nobody is to be met there."""
    port = variables.get("MASTER_PORT")
    if port is not None:
        checked_port("MASTER_PORT", port)


def _without_launcher(rank: int | None, world_size: int | None, url: SplitResult | None) -> Identity:
    key = _url_key(url)
    if rank is None and world_size is None and key is None:
        return Identity(0, 1, _own_key(), "none")
    if rank is None or world_size is None:
        missing = [name for name, value in (("rank", rank), ("world_size", world_size)) if value is None]
        raise ArgumentError(
            f"{' and '.join(missing)} must be given too, as no launcher's variables tell\n"
            "Give both rank and world_size, or start the ranks with `shim run`."
        )
    _check_range(rank, world_size, "")
    if key is None and world_size > 1:
        raise StateError(
            f"MASTER_ADDR and MASTER_PORT are not set, so that the {world_size} ranks cannot find each other\n"
            "Set them, give an init_method such as tcp://localhost:29500, or start the ranks with `shim run`."
        )
    return Identity(rank, world_size, _own_key() if key is None or world_size == 1 else key, "arguments")


def _own_key() -> str:
    return f"alone {secrets.token_hex(16)}"


def _checked_url(init_method: str | None) -> SplitResult | None:
    """Return *init_method* taken apart, None where it leaves everything to the environment."""
    if init_method is None:
        return None
    url = urlsplit(init_method)
    if url.scheme not in _SCHEMES:
        raise ArgumentError(
            f"init_method must begin with {', '.join(f'{scheme}://' for scheme in _SCHEMES)}, got {init_method!r}"
        )
    if url.scheme == "file" and (url.netloc not in ("", "localhost") or len(url.path) < 2):
        raise ArgumentError(f"init_method must be file:///path with an absolute path, got {init_method!r}")
    return url


def _explicit(value: int | None, name: str, url: SplitResult | None) -> int | None:
    """Return what the caller says about *name*, as an argument or in the URL."""
    said = parse_qs(url.query).get(name) if url else None
    if value is None and said:
        if not said[-1].isdigit():
            raise ArgumentError(f"init_method's {name} must be a number that is not negative, got {said[-1]!r}")
        value = int(said[-1])
    return None if value is None else _integer(value, name)


def _integer(value: int, name: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be an int, got {value!r}") from None


def _check_range(rank: int, size: int, shown: str) -> None:
    if size < 1:
        raise ArgumentError(f"the world size must be at least 1, got {size}{shown}")
    if not 0 <= rank < size:
        raise ArgumentError(f"the rank must be in 0..{size - 1}, got {rank}{shown}")


def _url_key(url: SplitResult | None) -> str | None:
    """Return the name of the job that meets at *url*; None where the environment has to say."""
    if url is None or url.scheme == "env":
        return None
    if url.scheme == "file":
        return f"file {os.path.realpath(url.path)}"
    try:
        port = url.port
    except ValueError as error:
        raise ArgumentError(f"init_method must be tcp://host:port, got {url.geturl()!r}: {error}") from None
    if not url.hostname or port is None:
        raise ArgumentError(f"init_method must be tcp://host:port, got {url.geturl()!r}")
    checked_port("init_method", str(port))
    require_this_host("init_method", url.hostname)
    return f"{BY_HAND.name} port {port}"


def _launcher_of(variables: Variables, rank: int | None, world_size: int | None) -> Launcher | None:
    """Return who started this process; *rank* and *world_size*, where given, need no launcher to agree with them."""
    used = [launcher for launcher in LAUNCHERS if launcher.was_used(variables)]
    if not used:
        if rank is None and world_size is None:
            _refuse_size_alone(variables)
        return None
    chosen = used[0]
    if chosen.rank != BY_HAND.rank and _has_size_one(chosen, variables) and _says_more_by_hand(variables):
        return BY_HAND  # the launcher started one process, and that started the ranks
    for other in used[1:]:
        if other.level == chosen.level or (other is BY_HAND and not _repeats_shim_run(variables)):
            if rank is None:
                _require_agreement(variables, chosen, chosen.rank, other, other.rank)
            if world_size is None:
                _require_agreement(variables, chosen, chosen.size, other, other.size)
    return chosen


def _has_size_one(launcher: Launcher, variables: Variables) -> bool:
    name = variables.first(launcher.size)
    return name is not None and variables.get(name) == "1"


def _says_more_by_hand(variables: Variables) -> bool:
    return all(variables.get(name) for name in BY_HAND.signs) and variables.get("WORLD_SIZE") != "1"


def _repeats_shim_run(variables: Variables) -> bool:
    """Tell whether it was `shim run` that set the variables that are otherwise set by hand."""
    pairs = (("RANK", "SHIM_RANK"), ("WORLD_SIZE", "SHIM_WORLD_SIZE"))
    return all(variables.get(ours) and variables.get(name) == variables.get(ours) for name, ours in pairs)


def _require_agreement(
    variables: Variables, one: Launcher, ones: tuple[str, ...], other: Launcher, others: tuple[str, ...]
) -> None:
    mine, theirs = variables.first(ones), variables.first(others)
    if mine is None or theirs is None or variables.number(mine) == variables.number(theirs):
        return
    raise StateError(
        f"{variables.shown((mine,))}, of {one.name}, contradicts {variables.shown((theirs,))}, of {other.name}\n"
        f"Unset the variables of the one that did not start this process: {', '.join(one.signs)} or {', '.join(other.signs)}."
    )


def _refuse_size_alone(variables: Variables) -> None:
    """Raise StateError where MindSpore's names for rank and size are set, which do not tell where the others are."""
    if variables.get("RANK_SIZE") not in (None, "1"):
        raise StateError(
            f"{variables.shown(('RANK_ID', 'RANK_SIZE'))}, and MS_ROLE is not set, so that the ranks cannot find each other\n"
            "Start them with msrun or `shim run`, or unset RANK_SIZE."
        )
