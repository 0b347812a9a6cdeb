"""Starting ranks from a program, the same in every version of paddle."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from shim.core import groups
from shim.core.callers import Caller
from shim.core.job.hosts import another_host
from shim.errors import ArgumentError, ShimError, StateError, UnsupportedError
from shim.frontends._paddle.errors import ArgumentTypeError, paddle_function
from shim.frontends._paddle.world.options import BACKENDS
from shim.launch.identity import free_addresses, new_job_key, rank_environment
from shim.launch.spawning import SpawnedRanks

_OPTIONS = ("start_method", "backend", "gpus", "xpus", "ips", "print_config")
_DEPRECATED = {
    "selected_devices": "gpus or xpus",
    "cluster_node_ips": "ips",
    "node_ip": "ips",
    "started_port": "no port, as free ones are found",
    "use_paddlecloud": "no cloud, as all ranks are on this host",
}
_BACKENDS = ("auto", *BACKENDS)
_SPAWN = paddle_function("spawn")


class MultiprocessContext(SpawnedRanks):
    """The processes of one ``spawn``: ``processes``, their ``return_queues`` and ``error_queues``, and ``join``."""


def _start(
    caller: Caller,
    func: Callable[..., Any],
    args: Iterable[Any],
    count: Any,
    join: bool,
    daemon: bool,
    options: Mapping[str, Any],
) -> MultiprocessContext:
    """Start the processes, and wait for them where *join* asks for it."""
    if not callable(func):
        raise caller.explain(ArgumentTypeError(f"func must be callable, got {func!r}"))
    plan = _plan_for(caller, count, options)
    try:
        arguments = tuple(args)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"args must be a tuple of func's arguments, got {args!r}")) from None
    try:
        return MultiprocessContext(
            caller.function, func, arguments, plan.environments, plan.start_method, bool(daemon), bool(join)
        )
    except ArgumentError as error:
        raise caller.explain(ArgumentTypeError(str(error))) from None


def spawn(
    func: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: Any,
) -> MultiprocessContext:
    """Call *func* with *args* in *nprocs* new processes (-1: one for each CPU), which are the ranks of one job of this host.

    *join* waits for all, *daemon* ends them with this process; *options* are start_method, backend, gpus, xpus and ips.
    Raises: an Exception with the traceback when a rank fails, after the others were ended; ValueError for other options.
    Deviates: raises for options that paddle has deprecated, and for other hosts than this one.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/spawn_en.html
    """
    return _start(_SPAWN, func, args, nprocs, join, daemon, options)


class _Plan(NamedTuple):
    """How the ranks start, and the environment of each."""

    start_method: str
    environments: list[dict[str, str]]


def _plan_for(caller: Caller, count: Any, options: Mapping[str, Any]) -> _Plan:
    """Return what *options* ask for, for *count* ranks, or where it is -1 as many as there are devices or CPUs."""
    try:
        _check_names(options)
        method = options.get("start_method") or "spawn"
        if method not in multiprocessing.get_all_start_methods():
            raise ArgumentError(f"start_method must be spawn, fork or forkserver, got {method!r}")
        if method == "fork" and groups.is_initialized():
            raise StateError(
                "start_method must not be fork in a process that is a rank already, which a fork would take itself for\n"
                "Use spawn or forkserver, or call destroy_process_group before."
            )
        devices = _devices(options)
        size = _size(count, devices)
        _check_host(options.get("ips"))
        return _Plan(method, _environments(size, _backend(options), devices))
    except ShimError as error:
        raise caller.explain(error) from None


def _check_names(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in _DEPRECATED:
            raise UnsupportedError(f"{name} is an option that paddle has deprecated\nGive {_DEPRECATED[name]}.")
        if name not in _OPTIONS:
            raise ArgumentError(f"the options are {', '.join(_OPTIONS)}, got {name}")
    if options.get("print_config"):
        raise UnsupportedError("print_config must be False: the paddle frontend has no such report")


def _devices(options: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Return the variable that names a rank's device, and each rank's."""
    given = {name: options[name] for name in ("gpus", "xpus") if options.get(name) is not None}
    if not given:
        return None
    if len(given) > 1:
        raise ArgumentError("gpus and xpus must not both be given")
    [(name, text)] = given.items()
    devices = str(text).split(",")
    if not all(device.strip().isdigit() for device in devices):
        raise ArgumentError(f"{name} must be numbers with commas between them, got {text!r}")
    return f"FLAGS_selected_{name}", [device.strip() for device in devices]


def _size(count: Any, devices: tuple[str, list[str]] | None) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise ArgumentTypeError(f"nprocs must be an integer, got {count!r}")
    if count == -1:
        return len(os.sched_getaffinity(0)) if devices is None else len(devices[1])
    if count < 1:
        raise ArgumentError(f"nprocs must be at least 1, or -1, got {count}")
    if devices is not None and len(devices[1]) != count:
        raise ArgumentError(f"nprocs must be as many as there are devices, {len(devices[1])}, got {count}")
    return count


def _check_host(ips: Any) -> None:
    if ips is None:
        return
    if "," in str(ips):
        raise UnsupportedError(f"ips must be this host, where spawn starts its ranks, got {ips!r}")
    if away := another_host("ips", str(ips).strip()):
        raise UnsupportedError(f"spawn starts its ranks on this host: {away}\nStart them with `shim run --hosts`.")


def _backend(options: Mapping[str, Any]) -> str | None:
    backend = options.get("backend", "auto")
    if backend not in _BACKENDS:
        raise ArgumentError(f"backend must be one of {', '.join(_BACKENDS)}, got {backend!r}")
    return None if backend == "auto" else str(backend)


def _environments(size: int, backend: str | None, devices: tuple[str, list[str]] | None) -> list[dict[str, str]]:
    """Return each rank's environment, which a script written for paddle's launcher or for this project's finds right."""
    job = new_job_key()
    endpoints = free_addresses(size)
    found = []
    for rank in range(size):
        own = {
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_TRAINERS_NUM": str(size),
            "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
            "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        }
        if backend is not None:
            own["PADDLE_DISTRI_BACKEND"] = backend
        if devices is not None:
            own[devices[0]] = devices[1][rank]
        found.append({**rank_environment(rank, size, job), **own})
    return found
