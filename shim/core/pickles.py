"""Python objects as bytes that only the ranks of the job can have made, where they come over a network.

Unpickling runs code that the pickle names. Between hosts the bytes travel over connections of gloo or MPI, at which anybody
in the network may write; so each pickle is sealed with a key that comes from the job's secret, and nothing is
unpickled whose seal is not right.
"""

from __future__ import annotations

import hmac
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from shim.errors import EngineError

if TYPE_CHECKING:
    from shim.core.groups.process_group import ProcessGroup

_SEAL = 32  # bytes, of SHA-256


class Format(NamedTuple):
    """How objects become bytes, and bytes objects. ``said``, after the word objects, and ``number`` are compared between ranks."""

    said: str
    number: int
    dumps: Callable[[Any], bytes]
    loads: Callable[[Any], Any]


PICKLES = Format("", 0, pickle.dumps, pickle.loads)


def packed(group: ProcessGroup, item: Any, form: Format = PICKLES) -> bytearray:
    """Return the pickle of *item* for the ranks of *group*. Raises what the classes of its objects raise."""
    data = bytearray(form.dumps(item))
    return data + _seal(group.seal_key, data) if group.seal_key else data


def unpacked(group: ProcessGroup, data: bytes | bytearray | memoryview, form: Format = PICKLES) -> Any:
    """Return the object that a rank of *group* has packed. Raises EngineError where no rank of the job has."""
    if not group.seal_key:
        return form.loads(data)
    view = memoryview(data)
    content, seal = view[:-_SEAL], view[-_SEAL:]
    if not hmac.compare_digest(bytes(seal), _seal(group.seal_key, content)):
        raise EngineError(
            "an object came that no rank of this job has sent: it is not unpickled\n"
            "Somebody else in the network writes to the connections of the ranks."
        )
    return form.loads(content)


def _seal(key: bytes, data: bytearray | memoryview) -> bytes:
    return hmac.digest(key, bytes(data), "sha256")
