"""Who is calling: a frontend function's name and the names it gives to the roles of a collective's arguments.

Core writes its messages with roles (``{output}``, ``{input}``, ``{root}``); a ``Caller`` turns them into the words
of the frontend the user wrote, and into the class of error that the frontend's framework documents.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping
from types import FrameType
from typing import Any, Literal, Protocol

from shim.errors import CollectiveTimeoutError, DeviceTensorError, PeerLostError, ShimError, TensorError

_ROLE = re.compile(r"\{(\w+)\}")


class Members(Protocol):
    """What a message tells of a group of ranks; see ``groups.ProcessGroup``."""

    name: str
    ranks: tuple[int, ...]
    rank: int
    timeout: float

    def label(self, group_rank: int, of_size: bool = False) -> str: ...


class Caller:
    """A frontend function as error messages name it.

    ``parameters`` maps a role (output, input, root, peer, op, output_splits, input_splits, group, tag) to the
    frontend's parameter; a role that is not given keeps its own name. ``errors`` maps a class of ``shim.errors``
    to the class to raise in its place (a subclass of it). ``outsider`` says what happens when the caller is
    not a member of the group: ``"raise"`` a RankError, or ``"warn"`` and do nothing.
    """

    __slots__ = ("errors", "function", "outsider", "parameters")

    def __init__(
        self,
        function: str,
        /,
        *,
        errors: Mapping[type[ShimError], type[ShimError]] | None = None,
        outsider: Literal["raise", "warn"] = "raise",
        **parameters: str,
    ) -> None:
        self.function = function
        self.parameters = parameters
        self.errors = errors or {}
        self.outsider = outsider

    def explain(self, error: ShimError, group: Members | None = None) -> ShimError:
        """Return *error* in this caller's words: *function: what (rank r of n, group g)*, then the hint lines; of no ranks, nothing is said of the group."""
        what, newline, hint = str(error).partition("\n")
        place = (
            ""
            if group is None or not group.ranks
            else f" ({group.label(group.rank, of_size=True)}, group {group.name!r})"
        )
        text = self._in_my_words(f"{self.function}: {what}{place}{newline}{hint}")
        explained = self._class_for(type(error))(text)
        if isinstance(error, (PeerLostError, CollectiveTimeoutError)):
            explained.ranks = error.ranks  # type: ignore[attr-defined]  # the class is a subclass of error's
        if isinstance(error, DeviceTensorError):
            explained.device = error.device  # type: ignore[attr-defined]  # likewise
        if isinstance(error, TensorError) and error.raised is not None:
            return _of_both(explained, error.raised)
        return explained

    def _in_my_words(self, text: str) -> str:
        return _ROLE.sub(lambda match: self.parameters.get(match[1], match[1]), text)

    def _class_for(self, kind: type[ShimError]) -> type[ShimError]:
        for base in kind.__mro__:
            if base in self.errors:
                return self.errors[base]
        return kind


def _of_both(error: ShimError, raised: Exception) -> ShimError:
    """Return *error* as one that is of the class of *raised*, too, and has its attributes; *error* itself where no class can be both.

    Its pickle is that of *error*: nobody else has the class.
    """
    kind, plain = type(raised), type(error)
    if isinstance(error, kind):
        return error
    methods: dict[str, Any] = {
        "__init__": Exception.__init__,
        "__str__": Exception.__str__,
        "__reduce__": lambda _: error.__reduce__(),
    }
    try:
        both: ShimError = type(plain.__name__, (plain, kind), {"__module__": plain.__module__, **methods})(*error.args)
    except Exception:  # as for classes with fields of their own in C, and for one that allows no subclasses
        return error
    vars(both).update(vars(raised))
    return both


def user_place() -> str:
    """Return the line that called into this project, as *file:line in function*; empty where there is none."""
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "shim":
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def warn_user(text: str, kind: type[Warning] = UserWarning, through: str = "shim") -> None:
    """Give the warning *text* of *kind*, which points at the line that called into this project, be it *through* another."""
    depth = 1
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("shim", through):
        frame = frame.f_back
        depth += 1
    warnings.warn(text, kind, stacklevel=depth)
