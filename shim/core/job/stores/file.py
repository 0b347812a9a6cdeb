"""A store in a file that the processes of one host, or of one file system, share.

The file is a log: the greeting, then every operation that changed something, each with its checksum. A process carries
an operation out while it holds the file's lock: it reads what the others have written since, and writes its own.
What a process that died left half written is cut off by the next one.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shim.core.job.stores.base import DEFAULT_TIMEOUT, Store, timed_out
from shim.core.job.stores.rehearsed import RehearsedTable, is_rehearsed
from shim.core.job.stores.table import MUTATING, Operation, Table, packed
from shim.core.sockets.frames import Fields
from shim.errors import StoreError, StoreTimeoutError

_GREETING = b"shim-store 1\n"
_HEAD = struct.Struct("<II")  # of a record: the length and the checksum of its operation, in a byte, and its fields
_FIRST_PAUSE = 0.001  # seconds between two looks at the file
_LONGEST_PAUSE = 0.02
_SHORTEST_LOCK_LIMIT = 5.0  # seconds to wait for the lock, however short the caller's own limit


class FileStore(Store):
    """A store in the file *path*, which must be new or of the same job.

    The last of *world_size* stores that is closed, or no longer used, removes the file; None and numbers below 1 leave it.
    """

    def __init__(self, path: str, world_size: int | None = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(timeout)
        self.path = os.path.abspath(path)
        self._log = RehearsedTable(self.path) if is_rehearsed() else _Log(self.path)
        self.check([])  # so that a path that cannot be used is told now
        number = world_size if world_size is not None and world_size > 0 else 0
        self._leave = weakref.finalize(self, _leave, self._log, number, os.getpid())

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        if not self._is_open():
            raise StoreError(f"the store in {self.path} is closed")
        return self._log.request(operation, fields, self.timeout if timeout is None else timeout)

    def clone(self) -> FileStore:
        return FileStore(self.path, None, self.timeout)

    def close(self) -> None:
        self._leave()

    def _is_open(self) -> bool:
        leave: weakref.finalize[..., FileStore] | None = getattr(self, "_leave", None)
        return leave is None or leave.alive


def _leave(log: _Log | RehearsedTable, number: int, process: int) -> None:
    """Count one that has left, in the process that made the store, and remove the file after *number* of them."""
    if number < 1 or process != os.getpid() or isinstance(log, RehearsedTable):
        return
    try:
        if int(log.request(Operation.LEAVE, [], _SHORTEST_LOCK_LIMIT)[0]) >= number:
            os.unlink(log.path)
    except (StoreError, OSError):
        pass  # the file, or its folder, has been removed before us


class _Log:
    """The file, and the table that its operations have made so far. No file is open between two requests."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._threads = threading.Lock()
        self._forget()

    def request(self, operation: Operation, fields: Sequence[bytes], seconds: float) -> list[bytes]:
        deadline = time.monotonic() + seconds
        pause = _FIRST_PAUSE
        while (result := self._carry_out(operation, fields, seconds)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise timed_out(operation, fields, self._table.missing(fields), seconds)
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)
        return result

    def _carry_out(self, operation: Operation, fields: Sequence[bytes], seconds: float) -> list[bytes] | None:
        body = bytes((operation,)) + packed(fields)
        with self._threads, _locked(self.path, max(seconds, _SHORTEST_LOCK_LIMIT)) as descriptor:
            try:
                self._read_on(descriptor)
                result = self._table.carry_out(operation, fields)
                if result is not None and operation in MUTATING:
                    self._write(descriptor, body)
            except OSError as error:
                self._forget()  # the table may be ahead of the file
                raise StoreError(f"the store in {self.path} cannot be read or written: {error}") from None
            except BaseException:  # Ctrl-C too: nobody else would close what is half done
                self._forget()
                raise
        return result

    def _forget(self) -> None:
        self._table = Table()
        self._end = 0  # bytes of the file that the table holds
        self._identity = (0, 0)

    def _read_on(self, descriptor: int) -> None:
        """Carry out what was written since, and leave the file's end at the last whole record."""
        status = os.fstat(descriptor)
        if self._identity != (status.st_dev, status.st_ino) or status.st_size < self._end:
            self._forget()
            self._identity = (status.st_dev, status.st_ino)
        if status.st_size == self._end > 0:
            return
        news = _read(descriptor, self._end, status.st_size)
        place = 0
        if self._end == 0:
            place = self._begin(descriptor, news)
        try:
            for end, body in _records(news, place):
                self._table.carry_out(Operation(body[0]), Fields(body[1:]).values())
                place = end
        except (ValueError, TypeError) as error:
            raise StoreError(f"the store in {self.path} is damaged: {error}\nStart with a new file.") from None
        self._end += place
        if self._end < status.st_size:
            os.ftruncate(descriptor, self._end)

    def _begin(self, descriptor: int, news: bytes) -> int:
        """Return where the records begin, in a new file after writing the greeting."""
        if news.startswith(_GREETING):
            return len(_GREETING)
        if not _GREETING.startswith(news):
            raise StoreError(f"{self.path} is not a store's file\nGive a path where no file is, or this job's own.")
        os.pwrite(descriptor, _GREETING, 0)
        return len(_GREETING)

    def _write(self, descriptor: int, body: bytes) -> None:
        record = _HEAD.pack(len(body), zlib.crc32(body)) + body
        done = 0
        while done < len(record):
            done += os.pwrite(descriptor, record[done:], self._end + done)
        self._end += len(record)


@contextmanager
def _locked(path: str, seconds: float) -> Iterator[int]:
    """Open the file, made where there is none, and hold its lock."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"the store's file cannot be opened: {error}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):
                yield descriptor
                return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreTimeoutError(f"{path} was locked by another process for {seconds:g} s") from None
            time.sleep(_FIRST_PAUSE)
        finally:
            os.close(descriptor)


def _is_at(path: str, descriptor: int) -> bool:
    """Tell whether the open file is still the one at *path*; the last one to leave may have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read(descriptor: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(descriptor, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _records(log: bytes, place: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bodies of the whole records in *log* from *place* on, each with where it ends.

    What follows the last may be one that was not written to its end. Raises ValueError for a damaged one before others.
    """
    while place + _HEAD.size <= len(log):
        size, checksum = _HEAD.unpack_from(log, place)
        body = log[place + _HEAD.size : place + _HEAD.size + size]
        if not 0 < size <= len(body):
            return
        if zlib.crc32(body) != checksum:
            if place + _HEAD.size + size < len(log):
                raise ValueError(f"the record at byte {place} has a wrong checksum")
            return
        place += _HEAD.size + size
        yield place, body
