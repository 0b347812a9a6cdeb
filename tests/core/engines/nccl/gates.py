"""Work on a stream of a fake device that goes on when it is told to."""

from __future__ import annotations

import ctypes
import threading

from fake_device import Stream, current


class Gate:
    """What comes on a stream behind a closed gate waits until it is opened."""

    def __init__(self) -> None:
        self._may_go_on = threading.Event()
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._wait)

    def _wait(self, _: object) -> None:
        self._may_go_on.wait()

    def close(self, stream: Stream) -> None:
        with current(stream.number) as cuda:
            assert cuda.cuLaunchHostFunc(stream.handle, self._function, None) == 0

    def open(self) -> None:
        self._may_go_on.set()
