"""Which engine serves a group, and why: the one place where that is decided.

An engine's module is imported when a group is made that it serves, and not before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from shim.core.engines.place import OVER_NETWORKS, REHEARSAL, Choice, Place
from shim.core.job.variables import REHEARSED, Variables, chosen_stall_warning
from shim.core.tensors.kinds_of_devices import name_in_torch
from shim.errors import ArgumentError, DeviceTensorError, EngineError, UnsupportedError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.engines.network.link import Link
    from shim.core.job.job import Job

_VARIABLE = "SHIM_ENGINE"
_ACROSS = "SHIM_ACROSS"
_USUAL = "shared_memory"

# What carries data between hosts: the engine that uses nothing else, and the module that it needs.
_LIBRARIES = {"gloo": ("c10d", "torch"), "mpi": ("mpi", "mpi4py")}
_MPI_LAUNCHERS = ("Open MPI", "MPICH or Intel MPI")
_BACKENDS_OF_FRAMEWORKS = ("mpi",)  # names of theirs, which choose no engine here
_STAGE = "SHIM_STAGE"
_OF_TORCHS_DEVICES = ("rocm", "oneapi", "extension")  # for each of which torch has a backend, or can have one
_OF_HOST_MEMORY = "gloo"  # which frameworks let carry tensors on devices through host memory
_RECORDING = "SHIM_TRACE"


def usual() -> Choice:
    """Return the default choice."""
    return Choice(_USUAL, "all its ranks are on this host")


def engine_names() -> list[str]:
    """Return the names that a user can choose."""
    return list(_ENGINES)


def choose(backend: str = "", several_hosts: str = "", launcher: str = "") -> Choice:
    """Choose the engine of a world. Its user passed *backend*; *several_hosts*, unless empty, shows that its ranks are on several hosts.

    ``SHIM_ENGINE`` decides where it is set, and a *backend* that is an engine's name where it is not. Other backends, such as gloo, name no engine.
    Between hosts, ``SHIM_ACROSS`` decides for gloo or mpi; without it MPI's own *launcher* does, and what is installed.
    Raises ArgumentError for what cannot be had, and where the two contradict each other, UnsupportedError for ranks on several hosts
    where the user has chosen an engine for one, and EngineError where no library for several hosts is installed.
    """
    if os.environ.get(REHEARSED):
        return Choice(REHEARSAL, f"{REHEARSED} says", is_said=True)
    choice = _chosen(backend)
    if several_hosts and not choice.is_said:
        choice = Choice("hierarchical", "its ranks are on several hosts")
    elif several_hosts and not choice.is_over_network:
        raise refusal_of(several_hosts, choice.name)
    if not choice.is_over_network:
        return choice
    return replace(choice, library=OVER_NETWORKS[choice.name] or _library(launcher))


def settled(choice: Choice, hosts: Sequence[int]) -> Choice:
    """Return what *choice* comes to for ranks that have met on *hosts*, the numbers of each rank's."""
    if choice.is_said:
        return choice
    count = len(set(hosts))
    if count == 1:
        return Choice(_USUAL, "all its ranks are on this host")
    if count == len(hosts):
        name = _LIBRARIES[choice.library][0]
        return replace(choice, name=name, reason=f"each of its {count} ranks is on a host of its own")
    return replace(choice, name="hierarchical", reason=f"its {len(hosts)} ranks are on {count} hosts")


def choose_in(world: Choice, backend: str, hosts: Sequence[int]) -> Choice:
    """Choose the engine of a group of a world that has *world*'s; *hosts* are the numbers of its members' hosts.

    Its user passed *backend*. Raises as ``choose`` does.
    """
    if not world.is_over_network:
        choice = choose(backend)
        if choice.is_over_network:
            raise UnsupportedError(
                f"the backend {backend!r} needs a world whose ranks have met over a network, and this world's engine is {world.name}\n"
                f"Set {_VARIABLE}={choice.name} for all ranks, or leave the backend out."
            )
        return choice
    choice = _chosen(backend)
    if not choice.is_said:
        return settled(world, hosts)
    if choice.is_over_network:
        if choice.name != "hierarchical" and OVER_NETWORKS[choice.name] != world.library:
            raise ArgumentError(
                f"the backend {backend!r} contradicts the world's library between hosts, {world.library}"
            )
        return replace(choice, library=world.library)
    if len(set(hosts)) > 1:
        raise refusal_of("the members of the group", choice.name)
    return choice


def refusal_of(several_hosts: str, name: str = _USUAL) -> UnsupportedError:
    """Return the error of the engine *name* for ranks that are on several hosts, as *several_hosts* shows. It serves those of one."""
    return UnsupportedError(
        f"the ranks are on several hosts, and the {name} engine serves those of one: {several_hosts}\n"
        f"Unset {_VARIABLE}, or choose c10d, mpi or hierarchical."
    )


def _library(launcher: str) -> str:
    said = _said_across(Variables(os.environ))
    if said is not None:
        return said
    order = ["mpi", "gloo"] if launcher in _MPI_LAUNCHERS else ["gloo", "mpi"]
    for library in order:
        if find_spec(_LIBRARIES[library][1]) is not None:
            return library
    raise EngineError(
        "the ranks are on several hosts, and neither torch, whose gloo could connect them, nor mpi4py is installed\n"
        "Install one of them on every host."
    )


def _said_across(variables: Variables) -> str | None:
    said = variables.get(_ACROSS)
    if said not in (None, *_LIBRARIES):
        raise ArgumentError(f"{_ACROSS} must be one of {', '.join(_LIBRARIES)}, got {said!r}")
    return said


def _said_stage(variables: Variables) -> str | None:
    said = variables.get(_STAGE)
    if said not in (None, "host"):
        raise ArgumentError(f"{_STAGE} must be host, got {said!r}")
    return said


def _chosen(backend: str) -> Choice:
    said = Variables(os.environ).get(_VARIABLE)
    asked = backend if backend in engine_names() and backend not in _BACKENDS_OF_FRAMEWORKS else None
    if said is None:
        return usual() if asked is None else Choice(asked, f"backend={asked!r} says", is_said=True)
    if said not in engine_names():
        raise ArgumentError(f"{_VARIABLE} must be one of {', '.join(engine_names())}, got {said!r}")
    if asked not in (None, said):
        raise ArgumentError(f"{_VARIABLE}={said} contradicts the backend {asked!r}\nUnset one of them.")
    return Choice(said, f"{_VARIABLE} says", is_said=True)


def take_settings() -> None:
    """Take what the environment says of this process's engines. Raises ArgumentError for what it cannot say, also where nothing would ask for it."""
    from shim._native import set_stall_warning  # here: without the engine, core can be imported

    variables = Variables(os.environ)
    set_stall_warning(chosen_stall_warning(variables))
    _said_across(variables)
    _said_stage(variables)


def open_engine(place: Place, choice: Choice) -> Engine:
    """Return the engine that was chosen for the group at *place*, once all its ranks have met. All of them must have chosen the same one.

    Where ``SHIM_TRACE`` is set, what records the calls of this rank stands on it; the other ranks need not do so.
    """
    place = replace(place, choice=choice)
    if place.control is not None and not choice.is_over_network:
        place.exchange("meet", b"")  # which notices who has gone: another group's engine would not
    recorder = None
    if os.environ.get(_RECORDING):
        from shim.core.tracing.recorder import recorder_of  # as for an engine's module

        recorder = recorder_of(place.rank, len(place.ranks), place.key)
    engine = _rehearsal(place) if choice.is_rehearsal else _ENGINES[choice.name](place)
    if recorder is None:
        return engine
    from shim.core.engines.recording.calls import RecordedCalls

    return RecordedCalls(engine, recorder, place)


def _shared_memory(place: Place) -> Any:
    from shim.core.engines.shared_memory import SharedMemoryEngine

    return SharedMemoryEngine(place)


def _plain(place: Place) -> Engine:
    from shim.core.engines.plain import PlainEngine

    return PlainEngine(place, _shared_memory(place))


def _c10d(place: Place) -> Engine:
    from shim.core.engines.c10d.link import C10dEngine

    return C10dEngine(place)


def _mpi(place: Place) -> Engine:
    from shim.core.engines.mpi.link import MpiEngine

    return MpiEngine(place)


def _hierarchical(place: Place) -> Engine:
    from shim.core.engines.hierarchical.engine import HierarchicalEngine

    return HierarchicalEngine(place, _within_host, _link)


def _rehearsal(place: Place) -> Engine:
    from shim.core.engines.rehearsal.engine import RehearsalEngine

    return RehearsalEngine(place)


_ENGINES: dict[str, Callable[[Place], Engine]] = {
    "shared_memory": _shared_memory,
    "plain": _plain,
    "c10d": _c10d,
    "mpi": _mpi,
    "hierarchical": _hierarchical,
}


def _within_host(place: Place) -> Any:
    """Return the engine of the ranks of one host in a group of several, which tells nobody what they wait for: the group does."""
    engine = _shared_memory(replace(place, choice=Choice(_USUAL, "they are on one host")))
    engine.serve_larger_group()
    return engine


def _link(place: Place, key: str, ranks: tuple[int, ...]) -> Link:
    """Return the link by which the library of *place*'s choice connects the world ranks *ranks*, who alone use *key*."""
    assert place.choice is not None
    if place.choice.library == "gloo":
        from shim.core.engines.c10d.link import gloo_link

        return gloo_link(place, key, ranks)
    from shim.core.engines.mpi.link import mpi_link

    return mpi_link(place, key, ranks)


def place_by_library(job: Job, timeout: float) -> tuple[str, bytes]:
    """Return the address where the ranks of *job* meet, and their secret, as MPI tells without being given any."""
    from shim.core.engines.mpi.meeting import place_by_mpi

    return place_by_mpi(job.rank, job.size, job.interface, timeout)


def open_for_device(
    error: DeviceTensorError, engine: Engine, rank: int, ranks: Sequence[int], backend: str = ""
) -> Engine:
    """Return what carries out calls for tensors where *error* says, of a group of *backend* that *engine* serves in host memory.

    The caller is group rank *rank*, and *ranks* are the members' ranks in the world. It is made of the group's engine, by whose agreement
    its calls begin. Raises DeviceTensorError, with what would help, where nothing serves the device.
    """
    said = _said_stage(Variables(os.environ))
    kind, what = error.device[0], str(error).partition("\n")[0]
    library = _library_of_device(backend, kind)

    def make(under: Engine) -> Engine:
        if said == "host" or library == _OF_HOST_MEMORY:
            from shim.core.engines.staged import StagedCalls

            return StagedCalls(under, rank, len(ranks), f"{_STAGE} says" if said else f"backend={backend!r} says")
        if library is None:
            raise EngineError(f"the group's backend {backend!r} names none")
        if kind == "cuda":
            from shim.core.engines.nccl.engine import NcclEngine

            return NcclEngine(under, rank, len(ranks))
        if kind in _OF_TORCHS_DEVICES:
            from shim.core.engines.accelerators.engine import AcceleratorEngine

            return AcceleratorEngine(under, rank, ranks, name_in_torch(kind), library, ":" in backend)
        raise EngineError("no engine here serves it")

    try:
        return engine.for_device(make)
    except EngineError as failure:
        refusal = DeviceTensorError(
            f"{what}\nThe engine for {name_in_torch(kind)} cannot be had: {failure}.\nPass tensor.cpu(), and read the result there; or set "
            f"{_STAGE}=host for all ranks, which copies to host memory and back with every call."
        )
        refusal.device = error.device
        raise refusal from None


def serves_devices(kind: str) -> bool:
    """Tell whether there is an engine for tensors on devices of *kind*, and what it needs."""
    try:
        if kind == "cuda":
            from shim.core.engines.nccl.engine import NcclEngine

            NcclEngine.check_is_there()
        elif kind in _OF_TORCHS_DEVICES:
            from shim.core.engines.accelerators.engine import AcceleratorEngine

            AcceleratorEngine.check_is_there(name_in_torch(kind))
        else:
            return False
    except EngineError:
        return False
    return True


def _library_of_device(backend: str, kind: str) -> str | None:
    """Return what *backend* names for devices of *kind*: "nccl" or "cpu:gloo,cuda:nccl". None where it names others only."""
    pairs = [pair.rpartition(":") for pair in backend.lower().split(",")]
    return next((name for device, _, name in pairs if device in ("", name_in_torch(kind))), None)


def check_room(ranks: int) -> None:
    """Raise EngineError if this process lacks the resources for a group of so many *ranks*, before the others wait for it."""
    from shim.core.engines import shared_memory

    shared_memory.check_room(ranks)
