"""Warnings of functions that torch calls by other names now: once for each place of a call, unless the program's filters want each of them."""

from __future__ import annotations

import sys
import warnings
from types import CodeType, FrameType
from typing import Any

from shim.core.callers import Caller
from shim.frontends._releases import has
from shim.frontends.torch._compiled_graphs import in_graphs
from shim.record import order_of
from shim.record.releases import followed_by

# The places that need no further warning under these filters: looking a warning up among them takes longer than a small call.
_told: dict[tuple[int, int], CodeType] = {}  # by where the code is, which is kept, and the instruction
_MOST_TOLD = 1000  # as many code objects are kept at most
_filters: list[Any] = []
_filters_then: list[Any] = []


def renamed(caller: Caller, new: str, since: str = "2.13", until: str = "") -> Caller:
    """Return *caller*, warning that torch calls the function *new* now, where a release from *since* to *until* is followed."""
    place = sys._getframe(2)
    if not _is_told(place):
        text = f"torch {since} renamed {caller.function} to torch.distributed.{new}; call it by the new name"
        _warn(text if _is_followed(since, until) else "", place)
    return caller


def deprecated(caller: Caller, instead: str, since: str = "2.13", earlier: str = "") -> Caller:
    """Return *caller*, warning that torch wants *instead* to be called, or what has its *earlier* name, if *since* or a later release is followed."""
    place = sys._getframe(2)
    if not _is_told(place):
        there = instead if has(f"torch.distributed.{instead.partition(' ')[0]}") else earlier
        text = f"torch deprecates {caller.function}; call torch.distributed.{there}"
        _warn(text if _is_followed(since) else "", place)
    return caller


def _is_followed(since: str, until: str = "") -> bool:
    """Tell whether the frontend follows a release from *since* to *until*, or a later one where that is empty."""
    followed = order_of(followed_by("shim.frontends.torch").record)[1][:2]
    return _numbers(since) <= followed and (not until or followed <= _numbers(until))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _is_told(place: FrameType) -> bool:
    filters = warnings.filters
    return (id(place.f_code), place.f_lasti) in _told and filters is _filters and filters == _filters_then


def _warn(text: str, place: FrameType) -> None:
    """Warn with *text*, if there is one, at *place*."""
    global _filters
    if text:
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


in_graphs(deprecated, lambda caller, *_told: caller)  # torch's own functions warn of nothing in a graph either
