"""The border between an example and the frontend, at which the example's tensors become another kind's and back.

The example makes and reads its own framework's tensors. What it hands to the frontend's functions is of the other kind, over
the same memory or, where a framework cannot do that, copied, and copied back when the call or its work has ended. What
they return goes back as the example's own kind. So the frontend works with nothing but the other kind's tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from shim.conformance.examples.comparing import is_handle
from shim.conformance.examples.conversion import (
    InapplicableError,
    array_over,
    as_kind,
    dtype_as,
    is_a,
    shares_memory,
)


class ForeignResultError(TypeError):
    """A frontend was given tensors of one kind and returned another's."""


class Border:
    """What an example's tensors of the kind *own* go through on their way to a frontend, which sees them as *other*.

    ``crossed`` counts those that did; ``refusal`` says why one could not.
    """

    def __init__(self, own: str, other: str) -> None:
        self.own = own
        self.other = other
        self.crossed = 0
        self.refusal = ""
        # By ids, with what has the id, so that it keeps it: what stands for a frontend's functions and classes, the functions that are
        # stood for, the classes of works that are watched, and how tensors got into works and other objects.
        self._seen: dict[int, tuple[Any, Any]] = {}
        self._real: dict[int, Any] = {}
        self._watched: dict[type, type] = {}
        self._held: dict[int, tuple[Any, _Crossing]] = {}
        self._kept: list[tuple[Any, Any]] = []  # tensors over whose memory others lie, as long as the example goes on

    def through(self, thing: Any) -> Any:
        """Return what stands for *thing* of a frontend: a function, or a class whose objects hold or take tensors."""
        if id(thing) not in self._seen:
            self._seen[id(thing)] = (thing, self._stand_in(thing))
        return self._seen[id(thing)][1]

    def _stand_in(self, thing: Any) -> Any:
        if inspect.isclass(thing):
            return self._class(thing)
        if not inspect.isroutine(thing) or "object" in thing.__name__:
            return thing  # what goes through a function for objects is theirs, tensors too

        @functools.wraps(thing)
        def call(*arguments: Any, **named: Any) -> Any:
            return self._call(thing, arguments, named)

        self._real[id(call)] = thing
        return call

    def _class(self, kind: type) -> type:
        """Return a subclass of *kind* whose objects are made and called with the other kind's tensors, if they are with any."""
        names: dict[str, Any] = {}
        if "__call__" in dir(kind) and kind.__module__.startswith("shim."):

            def call(this: Any, *arguments: Any, **named: Any) -> Any:
                return self._call(super(made, this).__call__, arguments, named)  # type: ignore[misc]  # kind has it

            names["__call__"] = call
        if not names and "tensor" not in _parameters(kind):
            return kind

        @functools.wraps(kind.__init__)  # type: ignore[misc]  # no object's, but the class's that is inherited from
        def begin(this: Any, *arguments: Any, **named: Any) -> None:
            crossing = _Crossing(self)
            super(made, this).__init__(*crossing.inward(arguments), **crossing.inward(named))
            if crossing.crossed:
                self._held[id(this)] = (this, crossing)

        names["__init__"] = begin
        made: Any = type(kind.__name__, (kind,), {**names, "__module__": kind.__module__, "__doc__": kind.__doc__})
        return made  # type: ignore[no-any-return]  # Any, as super() is to be asked for what mypy does not know of

    def _call(self, function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        crossing = _Crossing(self)
        return crossing.returned(function(*crossing.inward(tuple(arguments)), **crossing.inward(named)))

    def real(self, thing: Any) -> Any:
        """Return the frontend's function that *thing* stands for, or *thing* itself."""
        return self._real.get(id(thing), thing)

    def held(self, thing: Any) -> _Crossing | None:
        """Return how the tensors got into *thing*, if it is known to hold any."""
        return self._held[id(thing)][1] if id(thing) in self._held else None

    def converted(self, tensor: Any, kind: str) -> Any:
        """Return *tensor* as one of *kind*."""
        made = self.noting(as_kind, tensor, kind)
        self._kept.append((tensor, made))
        return made

    def noting(self, convert: Callable[..., Any], *arguments: Any) -> Any:
        """Convert, and take note of an InapplicableError, which goes on."""
        try:
            return convert(*arguments)
        except InapplicableError as error:
            self.refusal = self.refusal or str(error)
            raise

    def watch(self, work: Any, crossing: _Crossing) -> Any:
        """Have each method of *work* bring back what was written until it returns. It becomes an object of a subclass."""
        if id(work) not in self._held:
            kind = type(work)
            if kind not in self._watched:
                self._watched[kind] = self._watched_kind(kind)
            work.__class__ = self._watched[kind]
            self._held[id(work)] = (work, crossing)
        return work

    def _watched_kind(self, kind: type) -> type:
        methods = {
            name: self._after(method)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") and not isinstance(inspect.getattr_static(kind, name), staticmethod)
        }
        return type(kind.__name__, (kind,), {**methods, "__slots__": (), "__module__": kind.__module__})

    def _after(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(this: Any, *arguments: Any, **named: Any) -> Any:
            return self._held[id(this)][1].returned(method(this, *arguments, **named))

        return call


class _Crossing:
    """One call over the *border*: what went in, so that what comes out can be told from it."""

    def __init__(self, border: Border) -> None:
        self.border = border
        self.crossed = 0
        self._owns: dict[int, tuple[Any, Any]] = {}  # by the id of the other kind's tensor: it, and the example's own
        self._copies: list[_Copy] = []
        self._lists: list[tuple[list[Any], list[Any]]] = []  # the example's own list, and the one the frontend has

    def inward(self, thing: Any) -> Any:
        """Return *thing* as the frontend gets it. Raises InapplicableError where it cannot."""
        if is_a(thing, self.border.own):
            return self._converted(thing)
        if isinstance(thing, list):
            made = [self.inward(entry) for entry in thing]
            self._lists.append((thing, made))
            return made
        if type(thing) is tuple:
            return tuple(self.inward(entry) for entry in thing)
        if type(thing) is dict:
            return {name: self.inward(entry) for name, entry in thing.items()}
        held = self.border.held(thing)
        if held is not None:
            self._join(held)
        dtype = self.border.noting(dtype_as, thing, self.border.own, self.border.other)
        return self.border.real(thing) if dtype is None else dtype

    def _converted(self, tensor: Any) -> Any:
        made = self.border.converted(tensor, self.border.other)
        if not shares_memory(tensor, made):
            self._copies.append(_Copy(tensor, made))
        self._owns[id(made)] = (made, tensor)
        self.crossed += 1
        self.border.crossed += 1
        return made

    def _join(self, held: _Crossing) -> None:
        for _, own in held._owns.values():
            array_over(own)  # waits for what MindSpore's operators still do with its memory
        self.crossed += held.crossed
        self._owns |= held._owns
        self._copies += held._copies

    def returned(self, value: Any) -> Any:
        """Return *value*, which a call returned, as the example gets it, with its lists and tensors as the call, so far, has made them."""
        for copy in self._copies:
            copy.bring_back()
        for own, made in self._lists:
            entries = [self._returned(entry) for entry in made]
            if len(entries) != len(own) or any(a is not b for a, b in zip(entries, own, strict=True)):
                own[:] = entries
        return self._returned(value)

    def _returned(self, value: Any) -> Any:
        if is_a(value, self.border.other):
            return self._own_of(value)
        if is_a(value, self.border.own) and self.crossed:
            raise ForeignResultError(
                f"tensors of {self.border.other} were given, and one of {self.border.own} was returned"
            )
        if type(value) in (list, tuple):
            for own, made in self._lists:
                if made is value:
                    return own
            entries = [self._returned(entry) for entry in value]
            same = all(a is b for a, b in zip(entries, value, strict=True))
            return value if same else type(value)(entries)
        return self.border.watch(value, self) if _is_work(value) else value

    def _own_of(self, tensor: Any) -> Any:
        if id(tensor) not in self._owns:
            made = self.border.converted(tensor, self.border.own)
            if not shares_memory(tensor, made):
                self._copies.append(_Copy(made, tensor))
            self._owns[id(tensor)] = (tensor, made)
        return self._owns[id(tensor)][1]


class _Copy:
    """The example's *own* tensor and the frontend's, *made*, which do not share memory and hold the same."""

    def __init__(self, own: Any, made: Any) -> None:
        self.own = own
        self.made = made
        self.known = array_over(made).tobytes()

    def bring_back(self) -> None:
        """Write to *own* what was written to *made*; where nothing was, *own* keeps what the example has written since."""
        elements = array_over(self.made)
        if elements.tobytes() != self.known:
            array_over(self.own)[...] = elements
            self.known = elements.tobytes()


def _is_work(thing: Any) -> bool:
    """Tell whether *thing* is a frontend's work; a framework's own future gets the example's tensors from that."""
    return type(thing).__module__.startswith("shim.") and is_handle(thing)


def _parameters(kind: type) -> Sequence[str]:
    try:
        return tuple(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        return ()
