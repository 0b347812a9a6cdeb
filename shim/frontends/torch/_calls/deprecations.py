"""Warnings of functions that torch calls by other names now: once for each place of a call, unless the program's filters want each of them."""

from __future__ import annotations

import sys
import warnings
from types import CodeType, FrameType
from typing import Any

from shim.core.callers import Caller
from shim.frontends._releases import has
from shim.frontends.torch._compiled_graphs import in_graphs

# The places that need no further warning under these filters: looking a warning up among them takes longer than a small call.
_told: dict[tuple[int, int], CodeType] = {}  # by where the code is, which is kept, and the instruction
_MOST_TOLD = 1000  # as many code objects are kept at most
_filters: list[Any] = []
_filters_then: list[Any] = []


def renamed(caller: Caller, new: str, since: str = "2.13") -> Caller:
    """Return *caller*, warning the frontend's user that torch calls the function *new* now, *since* a version."""
    place = sys._getframe(2)
    if not _is_told(place):
        _warn(
            f"torch {since} renamed {caller.function} to torch.distributed.{new}; call it by the new name", new, place
        )
    return caller


def deprecated(caller: Caller, instead: str) -> Caller:
    """Return *caller*, after warning the frontend's user that torch wants its *instead* to be called."""
    place = sys._getframe(2)
    if not _is_told(place):
        _warn(f"torch 2.13 deprecates {caller.function}; call torch.distributed.{instead}", instead, place)
    return caller


def _is_told(place: FrameType) -> bool:
    filters = warnings.filters
    return (id(place.f_code), place.f_lasti) in _told and filters is _filters and filters == _filters_then


def _warn(text: str, instead: str, place: FrameType) -> None:
    """Warn with *text* at *place*, if the torch that the frontend follows has the function that *instead* begins with."""
    global _filters
    if has(f"torch.distributed.{instead.partition(' ')[0]}"):
        warnings.warn(text, FutureWarning, stacklevel=4)
    if _is_wanted_each_time(text, place):
        return
    if len(_told) == _MOST_TOLD or not (warnings.filters is _filters and _filters == _filters_then):
        _told.clear()
        _filters = warnings.filters  # type: ignore[assignment]  # a list, which mypy takes for a mere sequence
        _filters_then[:] = _filters
    _told[id(place.f_code), place.f_lasti] = place.f_code


def _is_wanted_each_time(text: str, place: FrameType) -> bool:
    module = str(place.f_globals.get("__name__"))
    for action, message, kind, where, line in warnings.filters:
        fits = _fits(message, text) and _fits(where, module) and line in (0, place.f_lineno)
        if fits and issubclass(FutureWarning, kind):
            return action not in ("default", "ignore", "module", "once")
    return False


def _fits(pattern: Any, text: str) -> bool:
    return pattern is None or bool(pattern == text if isinstance(pattern, str) else pattern.match(text))


in_graphs(deprecated, lambda caller, _instead: caller)  # torch's own functions warn of nothing in a graph either
