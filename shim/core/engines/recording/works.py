"""A prepared call of which it is recorded when it starts, when the program waits for it, and when it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.core.engines.recording.definitions import digest_of
from shim.core.tracing.layout import IN_BACKGROUND, OUTPUT_DIGEST, State
from shim.core.work import WorkLayer, mover_of
from shim.errors import CollectiveTimeoutError

if TYPE_CHECKING:
    from shim.core.tracing.recorder import Recorder
    from shim.core.work import EngineWork

# As plain numbers: a member of an enumeration takes longer to find than all else here.
_PREPARED, _STARTED, _RUNNING, _WAITING = map(int, (State.PREPARED, State.STARTED, State.RUNNING, State.WAITING))
_ENDED, _FAILED = int(State.ENDED), int(State.FAILED)


class RecordedWork(WorkLayer):
    """Does what *under* does, whose record lies at *place*; *outputs* are the tensors whose digest is wanted at the end.

    An end is recorded when the program learns of it, or lets go of the work.
    """

    __slots__ = ("_calls", "_flags", "_outputs", "_place", "_ranks", "_recorder", "_state")

    def __init__(
        self, under: EngineWork, recorder: Recorder, place: int, flags: int, outputs: Any, ranks: tuple[int, ...]
    ) -> None:
        super().__init__(under)
        self._recorder = recorder
        self._calls = recorder.calls
        self._place = place
        self._flags = flags
        self._outputs = outputs
        self._ranks = ranks  # of the group whose message it receives; nothing for another call
        self._state = _PREPARED

    def mover(self) -> EngineWork:
        return mover_of(self.under)

    def read_before_others_write(self, others: list[Any]) -> None:
        self.mover().read_before_others_write([mover_of(other) for other in others])

    def start(self) -> None:
        if self._state == _PREPARED:
            self._state = _STARTED
            self._flags |= IN_BACKGROUND
            self._calls.begin_again(self._place, self._flags | _STARTED)
        try:
            self.under.start()
        except BaseException as error:
            self._fail(error)
            raise

    def wait(self, timeout: float = -1.0) -> None:
        if self._state == _PREPARED:  # with a timeout it is started, and goes on when that has passed
            self._state = _RUNNING if timeout < 0 else _STARTED
            self._flags |= IN_BACKGROUND * (timeout >= 0)
            self._calls.begin_again(self._place, self._flags | self._state)
        if self._state == _STARTED:
            self._state = _WAITING
            self._calls.wait(self._place, self._flags | _WAITING)
        try:
            self.under.wait(timeout)
        except BaseException as error:
            if not (isinstance(error, CollectiveTimeoutError) and timeout >= 0 and not self.under.is_completed()):
                self._fail(error)
            raise
        self._end()

    def is_completed(self) -> bool:
        is_completed = self.under.is_completed()
        if is_completed and self._state < _ENDED:
            self._see_end()
        return is_completed

    def _see_end(self) -> None:
        error = self.under.exception()
        if error is None:
            self._end()
        else:
            self._fail(error)

    def _end(self) -> None:
        if self._state >= _ENDED:
            return
        self._state = _ENDED
        if self._outputs is not None:
            digest = digest_of(self._outputs, self._recorder.digest_key, self._recorder.most)
            self._outputs = None
            if digest is not None:
                self._flags |= OUTPUT_DIGEST
                self._calls.note_outputs(self._place, digest)
        if self._ranks and (source := self.under.source_rank()) >= 0:
            self._calls.note_source(self._place, self._ranks[source])
        self._calls.end(self._place, self._flags | _ENDED)

    def _fail(self, error: BaseException) -> None:
        if self._state < _ENDED:
            self._state, self._outputs = _FAILED, None
            self._calls.end(self._place, self._flags | _FAILED, self._recorder.error(error))

    def __del__(self) -> None:
        if self._state in (_STARTED, _WAITING) and self.under.is_completed():
            self._see_end()
