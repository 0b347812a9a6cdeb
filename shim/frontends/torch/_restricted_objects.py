"""How objects travel with ``weights_only``: as torch.save writes them where torch is loaded, else as pickles of plain data.

What comes is read without running code that it names, whichever of the two it is: files of torch.save by torch's own unpickler for
weights, pickles by one that makes nothing but plain data. Neither bounds the memory and the time that reading takes.
"""

from __future__ import annotations

import io
import pickle
import re
import sys
from typing import Any

from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.pickles import PICKLES, Format
from shim.errors import UnsupportedError
from shim.frontends.torch._calls.arguments import told
from shim.frontends.torch._errors import UnsafeObjectError

_ZIP = b"PK"  # what torch.save writes begins so
_PLAIN = (
    "builtins.complex",
    "collections.OrderedDict",
)  # for which pickle has no codes; both are C and cannot be changed


def format_of(caller: Caller, members: ProcessGroup, weights_only: Any) -> Format:
    """Return how objects travel: any kind of them, or those alone that *weights_only* allows."""
    return WEIGHTS if weights_only is not False and told(caller, members, lambda _: bool(weights_only)) else PICKLES


def _dumps(item: Any) -> bytes:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        packed = pickle.dumps(item, protocol=5)  # which has codes for bytearray too
        _loads(packed)  # else the other ranks would be the ones to refuse it
        return packed
    file = io.BytesIO()
    torch.save(item, file)
    return file.getvalue()


def _loads(packed: Any) -> Any:
    file = io.BytesIO(packed)
    if bytes(packed[: len(_ZIP)]) != _ZIP:
        return _PlainUnpickler(file).load()
    torch: Any = sys.modules.get("torch")
    if torch is None:
        raise UnsupportedError(
            "torch.distributed: the torch frontend needs torch for the objects with weights_only that a rank with torch sends\n"
            "Import torch first."
        )
    try:
        return torch.load(file, weights_only=True)
    except pickle.UnpicklingError as error:
        named = re.search(r"GLOBAL (\S+)", str(error))
        what = f"a {named[1]}" if named else "what torch cannot read so"
        raise _unsafe(what) from None


WEIGHTS = Format(" (weights_only)", 1, _dumps, _loads)


class _PlainUnpickler(pickle.Unpickler):
    """Makes numbers, text, bytes, None, and lists, tuples, sets and dictionaries of them."""

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" in _PLAIN:
            return super().find_class(module, name)
        raise _unsafe(f"a {module}.{name}")


def _unsafe(what: str) -> UnsafeObjectError:
    return UnsafeObjectError(
        f"torch.distributed: weights_only allows plain data and torch's tensors, got {what}\n"
        "Send a dictionary of plain data in its place; tensors need torch to be imported."
    )
