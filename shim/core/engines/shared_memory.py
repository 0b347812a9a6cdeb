"""The engine for ranks on one host, and what the user's environment chooses of it; ``native/`` carries it out."""

from __future__ import annotations

import os

from shim._native import Group, set_cross_memory_from
from shim.core.engines.base import Engine
from shim.core.engines.place import Place
from shim.core.job.variables import Variables, checked_bytes
from shim.core.shared_tensors.allocations import chosen_to_share, share_from_now_on
from shim.errors import EngineError

NEVER = 1 << 48  # more bytes than a message can have
_DESCRIPTORS = 8  # that a group needs while it is made beside the two for each rank


def check_room(ranks: int) -> None:
    """Raise EngineError if this process cannot open the files that a group of so many *ranks* needs."""
    opened: list[int] = []
    try:
        for _ in range(_DESCRIPTORS + 2 * ranks if ranks > 0 else 0):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise EngineError(
            f"this process cannot open the {_DESCRIPTORS + 2 * ranks} files that making a group of {ranks} takes: {error.strerror}"
        ) from None
    finally:
        for file in opened:
            os.close(file)


class SharedMemoryEngine(Group):
    """The group's ranks share one memory file; see docs/architecture.md for what happens in it.

    Its collectives are C++ functions that Python calls without a step between: ``shim/_native.pyi`` has their signatures.
    """

    name = "shared_memory"
    control = None
    seal_key = b""  # its memory is handed to processes of the same user alone

    __slots__ = ()

    def __init__(self, place: Place) -> None:
        world = _of_this_kind(place.world)
        variables = Variables(os.environ)
        folder = measurements_folder(variables)
        if world is None:
            set_cross_memory_from(chosen_cross_memory(variables))
            share_from_now_on(chosen_to_share(variables))
        origin = place.origin.as_tuple()
        engine = (place.choice.name, place.choice.reason) if place.choice else (self.name, "nothing else was chosen")
        super().__init__(
            place.key, place.name, list(place.ranks), place.rank, place.timeout, world, folder, origin, engine
        )

    for_device = Engine.for_device

    def figures(self) -> str:
        sizes = ", ".join(f"{name} {_shown(size)}" for name, size in self.thresholds().items())
        where = "swap: where the system lets ranks read each other's memory"
        return f"thresholds in bytes: {sizes} ({where})"


Engine.register(SharedMemoryEngine)  # a native class has no second base; nothing is between Python and its methods


def _of_this_kind(world: object) -> SharedMemoryEngine | None:
    """Return the engine of this kind that serves *world*, perhaps under others."""
    while world is not None and not isinstance(world, SharedMemoryEngine):
        world = getattr(world, "under", None)
    return world


def _shown(size: int) -> str:
    return "never" if size >= NEVER else str(size)


def chosen_cross_memory(variables: Variables) -> int:
    """Return the bytes that ``SHIM_CROSS_MEMORY`` gives, 0 where it is not set and the machine decides.

    Raises ArgumentError for what is neither ``off`` nor a number of bytes from 1 on.
    """
    text = variables.get("SHIM_CROSS_MEMORY")
    if not text:
        return 0
    if text == "off":
        return NEVER
    return checked_bytes("SHIM_CROSS_MEMORY", text, "off")


def measurements_folder(variables: Variables) -> str | None:
    """Return the folder that the user's environment chooses: "" where there is none, None where nothing is to be measured.

    ``SHIM_MEASURED`` says it, as a path or as ``off``. Without it, it is where caches of a user are, as the XDG base
    directory specification has it.
    """
    chosen = variables.get("SHIM_MEASURED")
    if chosen == "off":
        return None
    folder = chosen or _usual_folder(variables)
    try:
        folder.encode()
    except UnicodeEncodeError:  # the engine takes text; no figure is worth an error
        return ""
    return folder


def _usual_folder(variables: Variables) -> str:
    cache, home = variables.get("XDG_CACHE_HOME"), variables.get("HOME")
    if cache is not None and os.path.isabs(cache):  # the specification has a relative one ignored
        return os.path.join(cache, "shim")
    return os.path.join(home, ".cache", "shim") if home is not None else ""
