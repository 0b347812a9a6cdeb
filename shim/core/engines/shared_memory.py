"""The native engine for ranks on one host; ``native/`` carries it out."""

from __future__ import annotations

import os

from shim import _native
from shim.core import tensors
from shim.core.cross_memory import chosen_cross_memory
from shim.core.engines.place import Place
from shim.core.helper_threads import chosen_helper_threads
from shim.core.measurements import measurements_folder
from shim.core.shared_allocations import chosen_to_share, share_from_now_on
from shim.core.stall_warning import chosen_stall_warning
from shim.core.variables import Variables
from shim.errors import EngineError

__all__ = ["SharedMemoryEngine", "check_room"]

_DESCRIPTORS = 8  # that a group needs while it is made beside the two for each rank

_native.set_reader_chooser(tensors.reader_for)


def check_room(ranks: int) -> None:
    """Raise EngineError where this process has not the file descriptors that making a group of so many *ranks* takes."""
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


class SharedMemoryEngine(_native.Group):
    """The group's ranks share one memory file; see docs/architecture.md for what happens in it.

    Its collectives are C++ functions that Python calls without a step between: ``shim/_native.pyi`` has their signatures.
    """

    name = "shared_memory"

    __slots__ = ()

    def __init__(self, place: Place) -> None:
        world = place.world if isinstance(place.world, SharedMemoryEngine) else None
        variables = Variables(os.environ)
        folder = measurements_folder(variables)
        if world is None:
            _native.set_helper_threads(chosen_helper_threads(variables))
            _native.set_stall_warning(chosen_stall_warning(variables))
            _native.set_cross_memory_from(chosen_cross_memory(variables))
            share_from_now_on(chosen_to_share(variables))
        super().__init__(place.key, place.name, list(place.ranks), place.rank, place.timeout, world, folder)

    def helper_threads(self) -> int:
        """See ``Engine``: they belong to the process, and all its groups have the same."""
        return _native.helper_threads()
