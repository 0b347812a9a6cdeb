"""Who am I, and where are the others: read from explicit arguments or from a launcher's environment."""

from __future__ import annotations

import operator
import os
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from urllib.parse import SplitResult, parse_qs, urlsplit

from shim.core.job.hosts import several_may_meet_at
from shim.core.job.job import Job
from shim.core.job.launchers import launcher_of
from shim.core.job.launchers.launcher import JobName, Launcher
from shim.core.job.launchers.shim_run import BY_HAND
from shim.core.job.meeting_at_a_store import Meeting, meet_at
from shim.core.job.origin import origin_of_this_process
from shim.core.job.outer_job import outer_job
from shim.core.job.variables import REHEARSED, Variables, checked_port, rehearsed_size
from shim.errors import ArgumentError, ShimError, StateError

__all__ = ["NO_LAUNCHER", "Meeting", "locate", "locate_at", "rehearsed_job", "tell_of_missing_launcher"]

NO_LAUNCHER = "none"  # of a job of one rank for which nobody has asked

_SCHEMES = ("env", "file", "tcp")
_SHORTEST_SECRET = 16  # characters


def locate(
    rank: int | None = None,
    world_size: int | None = None,
    init_method: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Job:
    """Return this process's place in the world: from the arguments, and where they leave it open from *environment*.

    A process about which neither says anything is a world of its own. *init_method* is an ``env://``, ``file:///path``
    or ``tcp://host:port`` URL, which may say ``?rank=`` and ``world_size=``; no file is made and no port is bound.
    In msrun's scheduler, which is no rank, this ends the process with status 0, as MindSpore's own init does.
    Raises StateError for variables that contradict each other or lack one of their set, ArgumentError for values that
    are no rank, size or address.
    """
    variables = Variables(environment)
    if rehearsed := rehearsed_size(variables):
        return rehearsed_job(rank, world_size, rehearsed, variables)
    return _with_means(_located(rank, world_size, init_method, variables), variables)


def rehearsed_job(rank: int | None, size: int | None, world_size: int, variables: Variables) -> Job:
    """Return this process's place among *world_size* rehearsed ranks; *rank* and *size* are what the program says. Nobody is met."""
    if size not in (None, world_size):
        raise ArgumentError(f"world_size must be {REHEARSED}, {world_size}, got {size}")
    told = variables.get("SHIM_RANK") or variables.get("RANK") or "0"
    number = rank if rank is not None else int(told) if told.isdigit() else 0
    if not 0 <= number < world_size:
        raise ArgumentError(f"rank must be in 0..{world_size - 1}, as {REHEARSED} is {world_size}, got {number}")
    return Job(number, world_size, f"rehearsal of {world_size} ranks", REHEARSED)


def _located(rank: int | None, world_size: int | None, init_method: str | None, variables: Variables) -> Job:
    url = _checked_url(init_method)
    rank = _explicit(rank, "rank", url)
    world_size = _explicit(world_size, "world_size", url)
    launcher = launcher_of(variables, rank, world_size)
    if launcher is None:
        return _without_launcher(rank, world_size, url, variables)
    if not launcher.is_for_rank(variables):
        raise SystemExit(0)
    me = rank if rank is not None else launcher.number(variables, launcher.rank)
    size = world_size if world_size is not None else launcher.number(variables, launcher.size)
    shown = (
        "" if rank is not None and world_size is not None else f" ({variables.shown(launcher.rank + launcher.size)})"
    )
    _check_range(me, size, shown)
    job = _at_url(url, _told_by(launcher, variables, me, size), variables)
    name = _url_name(url)
    _check_port(variables)
    if size == 1:
        return replace(job, key=_own_key())
    if name is not None:
        return _named(job, name, variables)
    theirs = launcher.key(variables)
    name = JobName(f"{launcher.name} {theirs.text}", theirs.is_unique)
    return _named(job, name, variables, lambda told: _rank_told(launcher, theirs, Variables(told)))


def _with_means(job: Job, variables: Variables) -> Job:
    """Return *job* with what this process has for talking to other hosts."""
    secret = variables.get("SHIM_SECRET") or ""
    if 0 < len(secret) < _SHORTEST_SECRET:
        raise ArgumentError(
            f"SHIM_SECRET must have at least {_SHORTEST_SECRET} characters, got {len(secret)}\n"
            "Set it to the same value on all hosts: `openssl rand -hex 16` prints one."
        )
    return replace(job, secret=os.fsencode(secret), interface=variables.get("SHIM_INTERFACE") or "")


def _told_by(launcher: Launcher, variables: Variables, rank: int, size: int) -> Job:
    """Return what *launcher* told this *rank* of its job, which has no key yet."""
    away = launcher.several_hosts(variables)
    return Job(
        rank,
        size,
        "",
        launcher.name,
        several_hosts=away,
        hosts=() if away else (socket.gethostname(),) * size,
        local_rank=_told_number(launcher.local_rank, variables),
        address=launcher.address(variables),
        local_size=_told_number(launcher.local_size, variables),
    )


def _told_number(name: str, variables: Variables) -> int | None:
    text = variables.get(name) or ""
    return int(text) if text.isascii() and text.isdigit() else None


def _at_url(url: SplitResult | None, job: Job, variables: Variables) -> Job:
    """Return *job* with what *url* says of where its ranks meet."""
    if url is None or url.scheme != "tcp" or not url.hostname:
        return job
    away = several_may_meet_at("init_method", url.hostname, variables.get("SHIM_SECRET")) if _url_name(url) else ""
    return replace(job, address=url.netloc, several_hosts=job.several_hosts or away)


def _named(
    job: Job,
    name: JobName,
    variables: Variables,
    rank_in: Callable[[Mapping[str, str]], int | None] = lambda environment: None,
) -> Job:
    """Return *job* as one called *name*; *rank_in* tells which rank of it an environment is for."""
    chosen = variables.get("SHIM_JOB_NAME")
    if chosen is not None:
        name = JobName(f"{name.text} of {chosen}", is_unique=True)
    if name.is_unique:
        return replace(job, key=name.text)
    return replace(job, key=name.text, origin=lambda: origin_of_this_process(job.rank, job.size, rank_in, outer_job()))


def _rank_told(launcher: Launcher, name: JobName, variables: Variables) -> int | None:
    """Return which rank of the job *name* a process with these *variables* is; None where it is none."""
    try:
        is_ours = launcher.was_used(variables) and launcher.key(variables) == name
        return launcher.number(variables, launcher.rank) if is_ours else None
    except ShimError:
        return None


def locate_at(store: Meeting, rank: int, world_size: int) -> Job:
    """Return this process's place in a world whose ranks all have *store* and know who they are.

    Rank 0 hears from all of them through *store* where they are, and tells them a name for the job that was never used
    before; each of them calls this as often as the others do. Raises ArgumentError for a rank or size that is none, StateError
    where another job's rank came and waits in vain too, and what *store* raises when a rank does not come.
    """
    rank, world_size = _integer(rank, "rank"), _integer(world_size, "world_size")
    _check_range(rank, world_size, "")
    if world_size == 1:
        return Job(0, 1, _own_key(), "a store")
    variables = Variables(os.environ)
    if rehearsed := rehearsed_size(variables):
        return rehearsed_job(rank, world_size, rehearsed, variables)
    me = _with_means(Job(rank, world_size, "", "a store"), variables)
    origin = origin_of_this_process(rank, world_size, lambda environment: None, outer_job())
    told = meet_at(store, me, variables.get("SHIM_JOB_NAME") or "", origin)
    return replace(me, key=f"store {told.name}", several_hosts=told.several_hosts, address=told.address)


def _check_port(variables: Variables) -> None:
    """Refuse a port that none can be, even where nobody is to be met there."""
    port = variables.get("MASTER_PORT")
    if port is not None:
        checked_port("MASTER_PORT", port)


def _without_launcher(rank: int | None, world_size: int | None, url: SplitResult | None, variables: Variables) -> Job:
    name = _url_name(url)
    if rank is None and world_size is None and name is None:
        return Job(0, 1, _own_key(), NO_LAUNCHER if variables.get("RANK_SIZE") is None else "RANK_SIZE")
    if rank is None or world_size is None:
        missing = [name for name, value in (("rank", rank), ("world_size", world_size)) if value is None]
        raise ArgumentError(
            f"{' and '.join(missing)} must be given too: no launcher has set variables that tell\n"
            "Give both rank and world_size, or start the ranks with `shim run`."
        )
    _check_range(rank, world_size, "")
    if name is None and world_size > 1:
        raise StateError(
            f"MASTER_ADDR and MASTER_PORT are not set, so that the {world_size} ranks cannot find each other\n"
            "Set them, give an init_method such as tcp://localhost:29500, or start the ranks with `shim run`."
        )
    job = _at_url(url, Job(rank, world_size, _own_key(), "arguments"), variables)
    return job if name is None or world_size == 1 else _named(job, name, variables)


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


def _url_name(url: SplitResult | None) -> JobName | None:
    """Return the name of the job that meets at *url*; None where the environment has to say."""
    if url is None or url.scheme == "env":
        return None
    if url.scheme == "file":
        return JobName(f"file {os.path.realpath(url.path)}", is_unique=False)
    try:
        port = url.port
    except ValueError as error:
        raise ArgumentError(f"init_method must be tcp://host:port, got {url.geturl()!r}: {error}") from None
    if not url.hostname or port is None:
        raise ArgumentError(f"init_method must be tcp://host:port, got {url.geturl()!r}")
    checked_port("init_method", str(port))
    return JobName(f"{BY_HAND.name} port {port}", is_unique=False)


@cache
def tell_of_missing_launcher() -> None:
    """Say on stderr, once in this process, that it is the only rank."""
    program = os.path.basename(sys.argv[0]) if sys.argv[0].endswith(".py") else "SCRIPT"
    if sys.stderr is not None:
        sys.stderr.write(
            "shim: no launcher has started this process, so it is the only rank; "
            f"`shim run -n 4 {program}` starts 4 ranks, and -n 1 this one without this line\n"
        )
