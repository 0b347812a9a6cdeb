"""``mindspore.set_auto_parallel_context`` and its like, with a data-parallel mode of this project's. Import this only where MindSpore is loaded.

In that mode MindSpore itself stays in "stand_alone", as it has no groups to communicate through. What it builds for training is completed by
the classes beside this module, which ask here.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from shim.core.callers import Caller
from shim.errors import UnsupportedError
from shim.frontends.mindspore._groups import group_names

__all__ = [
    "DATA_PARALLEL",
    "STAND_ALONE",
    "_get_auto_parallel_context",
    "_reset_auto_parallel_context",
    "_set_auto_parallel_context",
    "auto_parallel_context",
    "degree",
    "get_auto_parallel_context",
    "is_data_parallel",
    "refuse_in_data_parallel",
    "reset_auto_parallel_context",
    "set_auto_parallel_context",
]

_SET = Caller("mindspore.set_auto_parallel_context")

_context: Any = sys.modules["mindspore.context"]
_own: Any = sys.modules["mindspore.parallel._auto_parallel_context"]

DATA_PARALLEL = "data_parallel"
STAND_ALONE = "stand_alone"


class _Settings(NamedTuple):
    """What a program has set and MindSpore is not told, or does not tell."""

    is_data_parallel: bool = False
    device_num: int | None = None


_settings = _Settings()


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Set how MindSpore trains in parallel by *kwargs*. With ``parallel_mode="data_parallel"``, the ranks of the world average or add up gradients.

    Raises: ValueError as MindSpore does; UnsupportedError for the modes in which MindSpore's compiler communicates, and for "parameter_broadcast"
    in this one.
    Deviates: in the data-parallel mode, MindSpore's own modules still see "stand_alone".
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mindspore/mindspore.set_auto_parallel_context.html
    """
    global _settings
    mode = kwargs.get("parallel_mode", STAND_ALONE)
    if mode in _context.ParallelMode.MODE_LIST and mode not in (STAND_ALONE, DATA_PARALLEL):
        raise _SET.explain(
            UnsupportedError(
                f"parallel_mode must be {STAND_ALONE!r} or {DATA_PARALLEL!r}, got {mode!r}, which uses mindspore's own process groups\n"
                "In this mode MindSpore's compiler splits the network, and communicates by its own groups alone. Split the network in the "
                "program, with the collectives, or run it without substitution."
            )
        )
    will_be = mode == DATA_PARALLEL if "parallel_mode" in kwargs else is_data_parallel()
    if will_be and kwargs.get("parameter_broadcast", _context.get_auto_parallel_context("parameter_broadcast")):
        raise _SET.explain(
            UnsupportedError(
                "parameter_broadcast must be False in the data-parallel mode: MindSpore's compiler does it, through mindspore's own process groups\n"
                "Give every rank the parameters of rank 0 with mindspore.ops.Broadcast before training, or begin with the same seed."
            )
        )
    _context.set_auto_parallel_context(**kwargs | ({"parallel_mode": STAND_ALONE} if mode == DATA_PARALLEL else {}))
    _settings = _settings._replace(is_data_parallel=will_be)
    if "device_num" in kwargs:
        _settings = _settings._replace(device_num=kwargs["device_num"])


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return the value of *attr_key* that is set for parallel training.

    Raises: ValueError as MindSpore does.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mindspore/mindspore.get_auto_parallel_context.html
    """
    value = _context.get_auto_parallel_context(attr_key)
    return DATA_PARALLEL if attr_key == "parallel_mode" and is_data_parallel() else value


def reset_auto_parallel_context() -> None:
    """Set what parallel training asks for to its defaults, and the mode to "stand_alone".

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mindspore/mindspore.reset_auto_parallel_context.html
    """
    global _settings
    _context.reset_auto_parallel_context()
    _settings = _Settings()


class _Context:
    """MindSpore's settings of parallel training, which its helpers ask one by one, with the program's mode."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_own.auto_parallel_context(), name)

    def get_parallel_mode(self) -> Any:
        """Return the mode that the program has set."""
        return get_auto_parallel_context("parallel_mode")

    def set_parallel_mode(self, parallel_mode: str) -> None:
        """Set the mode."""
        set_auto_parallel_context(parallel_mode=parallel_mode)

    def set_device_num(self, device_num: int) -> None:
        """Set by what a mean divides."""
        set_auto_parallel_context(device_num=device_num)

    def reset(self) -> None:
        """Set everything to its default."""
        reset_auto_parallel_context()


_the_context = _Context()


def auto_parallel_context() -> _Context:
    """Return what MindSpore's helpers ask for the settings of parallel training."""
    return _the_context


# The names of MindSpore's own modules for the same.
_get_auto_parallel_context = get_auto_parallel_context
_reset_auto_parallel_context = reset_auto_parallel_context
_set_auto_parallel_context = set_auto_parallel_context


def is_data_parallel() -> bool:
    """Tell whether the program has chosen the data-parallel mode."""
    return _settings.is_data_parallel


def degree(caller: Caller) -> int:
    """Return by what a mean divides: the number of devices that the program has set, or that of the ranks."""
    if _settings.device_num is not None:
        return _settings.device_num
    return group_names.known_group(caller, group_names.GlobalComm.WORLD_COMM_GROUP).size


def refuse_in_data_parallel(caller: Caller, instead: str) -> None:
    """Raise UnsupportedError in the data-parallel mode, in which *caller* would leave each rank to itself; *instead* says what to use."""
    if is_data_parallel():
        raise caller.explain(
            UnsupportedError(
                f"communicates by itself in the data-parallel mode, through mindspore's own process groups\n{instead}"
            )
        )
