"""The layer on a group's engine that records its calls."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from shim._native import tensor_key
from shim.core.collectives import COLLECTIVES
from shim.core.engines.layer import CallLayer
from shim.core.engines.recording.definitions import call_definition, digest_of
from shim.core.engines.recording.works import RecordedWork
from shim.core.tracing.layout import INPUT_DIGEST, OUTPUT_DIGEST, State
from shim.core.tracing.places import OBJECTS, Place, place_of_caller
from shim.errors import ArgumentError, DeviceTensorError, EngineError, MismatchError, OutOfMemoryError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine, Tensors
    from shim.core.engines.place import Place as Seat
    from shim.core.tracing.recorder import Recorder

_RUNNING, _PREPARED, _ENDED, _FAILED = (
    int(state) for state in (State.RUNNING, State.PREPARED, State.ENDED, State.FAILED)
)
_PICKLES = 1 << 10  # so many times more bytes of Python objects are recorded in a rehearsal than of other data
_WITH_SPLITS = frozenset(row.name for row in COLLECTIVES if row.splits)
_OF_ALL_RANKS = (MismatchError, EngineError, OutOfMemoryError)  # errors that are no refusal of this rank's call


class RecordedCalls(CallLayer):
    """Passes every call on to *under*, and tells *recorder* of it when it begins and when it has ended.

    A call is recorded even if *under* then refuses it, but for tensors that are elsewhere: the engine that takes the call then has a layer
    of its own, which is given the group's number *of_devices*.
    """

    def __init__(self, under: Engine, recorder: Recorder, place: Seat, of_devices: int = 0) -> None:
        super().__init__(under, place.rank, len(place.ranks))
        self.name, self.control, self.seal_key = under.name, under.control, under.seal_key
        self._place, self._of_devices = place, of_devices
        self._recorder = recorder
        self._calls = recorder.calls
        self._digest_key = recorder.digest_key
        self._ranks = place.ranks
        self._is_refusal_known = False  # of the last call, which has failed
        self._known: dict[Any, int] = {}  # numbers of the definitions of calls
        self._kept: list[Any] = []  # code objects whose ids are in the keys of the above
        self._group = of_devices or recorder.define(
            {
                "kind": "group",
                "name": place.name,
                "ranks": place.ranks,
                "key": sha256(place.key.encode()).hexdigest()[:16],
                "is_world": place.world is None,
                "engine": str(place.choice),
                "timeout": place.timeout,
            }
        )

    def for_device(self, make: Callable[[Engine], Engine]) -> Engine:
        """See ``Engine``. The calls of the engine for the device are recorded, and not those that it makes of *under*."""
        return RecordedCalls(self.under.for_device(make), self._recorder, self._place, self._group)

    def _pass_on(
        self,
        name: str,
        method: Callable[..., Any],
        writes: Tensors | None,
        reads: Tensors | None,
        tensors: tuple[Any, ...],
        arguments: tuple[Any, ...],
        now: bool,
        *more: Any,
    ) -> Any:
        told = tuple(map(_fixed, arguments)) if name in _WITH_SPLITS else arguments
        begun = self._begin(name, told + more, writes, reads, now)
        try:
            operation = method(*tensors, *arguments, now, *more)
        except BaseException as error:
            self._fail(begun, error)
            raise
        assert begun is not None  # tensors elsewhere were refused
        place, flags = begun
        if operation is not None and not isinstance(operation, int):
            wanted, ranks = writes if self._digest_key else None, self._ranks if name == "receive" else ()
            return RecordedWork(operation, self._recorder, place, flags, wanted, ranks)
        if operation is not None:  # a receive tells who has sent
            self._calls.note_source(place, self._ranks[operation])
        if (
            self._digest_key
            and writes is not None
            and (digest := digest_of(writes, self._digest_key, self._recorder.most)) is not None
        ):
            flags |= OUTPUT_DIGEST
            self._calls.note_outputs(place, digest)
        self._calls.end(place, flags | _ENDED)
        return operation

    def _begin(
        self, collective: str, arguments: tuple[Any, ...], outputs: Any, inputs: Any, now: bool
    ) -> tuple[int, int] | None:
        """Record a call, and return where it is and which digests it has; nothing for tensors that are elsewhere."""
        program, function, kinds = place_of_caller(3)
        try:
            tensors = tensor_key(outputs, inputs, bool(self._of_devices))
        except DeviceTensorError:
            return None
        except Exception as error:  # the engine says it better
            tensors = str(error).encode(errors="replace")
        key = (
            collective, arguments, tensors, now,
            0 if program is None else (id(program.f_code), program.f_lasti), 0 if function is None else id(function.f_code),
        )  # fmt: skip
        try:
            definition = self._known.get(key)
        except TypeError:  # an argument that the engine is going to refuse
            arguments = tuple(repr(argument) for argument in arguments)
            key = (*key[:1], arguments, *key[2:])
            definition = self._known.get(key)
        if definition is None:
            place = Place(program, function, kinds)
            content = call_definition(self._group, self._ranks, collective, arguments, outputs, inputs, now, place)
            definition = self._known[key] = self._recorder.define(content)
            self._kept += [frame.f_code for frame in (program, function) if frame is not None]
        self._is_refusal_known = False
        flags, digest = 0, 0
        if self._digest_key and inputs is not None:
            most = self._recorder.most * (_PICKLES if kinds & OBJECTS else 1)
            if (found := digest_of(inputs, self._digest_key, most)) is not None:
                flags, digest = INPUT_DIGEST, found
        return self._calls.begin(definition, flags | (_RUNNING if now else _PREPARED), digest), flags

    def _fail(self, begun: tuple[int, int] | None, error: BaseException) -> None:
        if begun is None:
            return
        place, flags = begun
        self._is_refusal_known = not isinstance(error, _OF_ALL_RANKS)
        self._calls.end(place, flags | _FAILED, self._recorder.error(error))

    def refuse(self, reason: str) -> None:
        """Record a refusal of which the engine knows nothing else: a frontend's, of a call that it has not made."""
        if not self._is_refusal_known:
            self._fail(self._begin("refused", (), None, None, True), ArgumentError(reason))
        self._is_refusal_known = False
        self.under.refuse(reason)

    def figures(self) -> str:
        below = self.under.figures()
        return f"recorded in {self._recorder.path}" + (f"; {below}" if below else "")


def _fixed(argument: Any) -> Any:
    """Return *argument* as it is now: split sizes may be a list that the program changes later."""
    if argument is None or isinstance(argument, (int, float)):
        return argument
    try:
        return tuple(argument)
    except TypeError:  # the engine refuses it
        return repr(argument)
