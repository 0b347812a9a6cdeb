"""Which engine serves a group, and why: the one place where that is decided.

An engine's module is imported when a group is made that it serves, and not before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shim.core.job.variables import Variables
from shim.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.engines.place import Place

__all__ = ["Choice", "check_room", "choose", "engine_names", "open_engine", "refusal_of", "usual"]

_VARIABLE = "SHIM_ENGINE"
_USUAL = "shared_memory"
_TRACED = "traced:"

# The module and the class of each engine. One that has an engine under it is made of one: it takes that too.
_ENGINES = {
    "shared_memory": ("shim.core.engines.shared_memory.engine", "SharedMemoryEngine"),
    "plain": ("shim.core.engines.plain", "PlainEngine"),
}
_UNDER = {"plain": "shared_memory"}
_RECORDING = "SHIM_TRACE"
_RECORDED = ("shim.core.engines.recording.calls", "RecordedCalls")
_WRAPPERS = {_TRACED: ("shim.core.engines.traced", "TracedCalls")}


@dataclass(frozen=True)
class Choice:
    """The engine of a group: its *name*, what stands before it (``traced:`` or nothing), and the *reason* as it follows "as"."""

    name: str
    reason: str
    before: str = ""

    def __str__(self) -> str:
        return self.before + self.name


def usual() -> Choice:
    """Return the default choice."""
    return Choice(_USUAL, "all its ranks are on this host")


def engine_names() -> list[str]:
    """Return the names that a user can choose."""
    return [*_ENGINES, *(f"{_TRACED}{name}" for name in _ENGINES)]


def choose(backend: str = "", several_hosts: str = "") -> Choice:
    """Choose the engine of a group. Its user passed *backend*; *several_hosts*, unless empty, shows that its ranks are on several hosts.

    ``SHIM_ENGINE`` decides where it is set, and a *backend* that is an engine's name where it is not. Other backends, such as gloo, name no engine.
    Raises ArgumentError for what cannot be had, and where the two contradict each other, and UnsupportedError for ranks on several hosts.
    """
    choice = _chosen(backend)
    if several_hosts:
        raise refusal_of(several_hosts, choice.name)
    return choice


def refusal_of(several_hosts: str, name: str = _USUAL) -> UnsupportedError:
    """Return the error of the engine *name* for ranks that are on several hosts, as *several_hosts* shows. It serves those of one."""
    return UnsupportedError(
        f"the ranks are on several hosts, and the {name} engine serves those of one: {several_hosts}\n"
        "The engines that could serve them, c10d, mpi and hierarchical, are not in this release."
    )


def _chosen(backend: str) -> Choice:
    said = Variables(os.environ).get(_VARIABLE)
    asked = backend if backend in engine_names() else None
    if said is None:
        return usual() if asked is None else _named(asked, f"backend={asked!r} says")
    if said not in engine_names():
        raise ArgumentError(f"{_VARIABLE} must be one of {', '.join(engine_names())}, got {said!r}")
    if asked not in (None, said):
        raise ArgumentError(f"{_VARIABLE}={said} contradicts the backend {asked!r}\nUnset one of them.")
    return _named(said, f"{_VARIABLE} says")


def _named(text: str, reason: str) -> Choice:
    before = _TRACED if text.startswith(_TRACED) else ""
    return Choice(text.removeprefix(before), reason, before)


def open_engine(place: Place, choice: Choice) -> Engine:
    """Return the engine that was chosen for the group at *place*, once all its ranks have met. All of them must have chosen the same one.

    Where ``SHIM_TRACE`` is set, what records the calls of this rank stands before it; the other ranks need not do so.
    """
    place = replace(place, choice=choice)
    recorder = None
    if os.environ.get(_RECORDING):
        from shim.core.tracing.recorder import recorder_of  # as for an engine's module

        recorder = recorder_of(place.rank, len(place.ranks), place.key)
    engine: Engine = _opened(place, choice.name)
    if choice.before:
        engine = _class_of(_WRAPPERS[choice.before])(engine)
    if recorder is not None:
        engine = _class_of(_RECORDED)(engine, recorder, place)
    return engine


def _opened(place: Place, name: str) -> Any:
    kind = _class_of(_ENGINES[name])
    under = _UNDER.get(name)
    return kind(place) if under is None else kind(place, _opened(place, under))


def _class_of(where: tuple[str, str]) -> Any:
    module, name = where
    return getattr(
        import_module(module), name
    )  # here, so that nobody needs the library of an engine that was not asked for


def check_room(ranks: int) -> None:
    """Raise EngineError if this process lacks the resources for a group of so many *ranks*, before the others wait for it."""
    import_module(_ENGINES[_USUAL][0]).check_room(ranks)
