"""One call on a rank: in a world of its own, with how it ended, and whether the world can still be used."""

from __future__ import annotations

import importlib
import inspect
import os
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from recipes import FRAMEWORKS, HOMES, made

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp

TIMEOUT = 2.0  # seconds that a rank waits for one that does not come
ME = Caller("fuzzing")
_MEMBERS = {"both": [0, 1], "first": [0], "second": [1], "destroyed": [0, 1]}
# What recipes.Raising says, and numpy of an array as a yes or no.
_ARGUMENTS_OWN = ("not so", "The truth value of an array with more than one element is ambiguous")


@dataclass(frozen=True)
class Call:
    """A function of a module below ``shim.frontends``, and the arguments as recipes."""

    module: str
    name: str
    positional: tuple[Any, ...]
    keywords: dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """What the call raised, if it did: the names of its class and those above it, and its text. And whether the world is usable."""

    raised: tuple[str, ...] = ()
    text: str = ""
    world: str = ""  # what was wrong with it afterwards

    @property
    def is_documented(self) -> bool:
        """Whether it is one of this project's errors, or what a method of the argument's own raised."""
        return not self.raised or "ShimError" in self.raised or self.text.startswith(_ARGUMENTS_OWN)

    @property
    def has_lost_group(self) -> bool:
        return "EngineError" in self.raised


def carry_out(by_rank: tuple[Call, ...]) -> Ended:
    """Make the call of this rank."""
    rank = int(os.environ["SHIM_RANK"])
    call = by_rank[min(rank, len(by_rank) - 1)]
    module = importlib.import_module(call.module)  # and the framework, which takes one rank longer than another
    frontend = call.module.split(".")[2]
    importlib.import_module(FRAMEWORKS[frontend])
    home = importlib.import_module(HOMES[frontend])
    world = groups.enter_world(ME, "fuzzing", timeout=TIMEOUT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ended = _called(module, home, call, _made_groups(home))
        return Ended(ended.raised, ended.text, _what_is_wrong_with(world))
    finally:
        groups.close_world()


def _called(module: Any, home: Any, call: Call, made_groups: dict[str, Any]) -> Ended:
    try:
        positional = [made(one, home, made_groups) for one in call.positional]
        keywords = {name: made(one, home, made_groups) for name, one in call.keywords.items()}
        function = getattr(module, call.name)
        result = function(*positional, **keywords)
        if not isinstance(function, type):
            _finish(result)
        repr(result)
    except BaseException as error:  # which class it is, is the question
        return Ended(tuple(kind.__name__ for kind in type(error).__mro__), str(error))
    return Ended()


def _finish(result: Any) -> None:
    """Wait for what the call began."""
    if isinstance(result, list | tuple):
        for one in result:
            _finish(one)
    elif callable(getattr(type(result), "wait", None)):
        result.wait()


def _made_groups(home: Any) -> dict[str, Any]:
    """Initialise the frontend, in the world that is there, and make groups in it."""
    begin = home.init_parallel_env if hasattr(home, "init_parallel_env") else home.init_process_group
    begin()
    limit = {"timeout": timedelta(seconds=TIMEOUT)} if "timeout" in inspect.signature(home.new_group).parameters else {}
    found = {name: home.new_group(ranks, **limit) for name, ranks in _MEMBERS.items()}
    home.destroy_process_group(found["destroyed"])
    return found


def _what_is_wrong_with(world: groups.ProcessGroup) -> str:
    if not world.is_alive:
        return "destroyed"
    try:
        total = np.full(3, float(world.rank + 1))
        calls.all_reduce(ME, world, total, total, ReduceOp.SUM).wait()
    except Exception as error:  # likewise
        return f"{type(error).__name__}: {error}"
    return "" if total.tolist() == [3.0] * 3 else f"the sum is {total.tolist()}"
