"""Whether a file can have anything to port: a search in its bytes, which takes a thousandth of the time that parsing takes.

It may find too much and must not miss anything. A file that uses the API has the framework's name and the name of a module of the API, or of
something that is in a module with much else. A module's name stands behind a dot, or as a name that is imported: prose, of which licences
alone have much ("distributed under ..."), has the same words in other places.
"""

from __future__ import annotations

import re
from functools import cache
from mmap import mmap

from shim import record
from shim.port.apis import APIS

_AS_NAME = rb"\.\s*\\?\s*%(name)s\b|\b%(name)s(?:\.\w|\(|[ \t]*(?:as\b|[,)\r\n#;\\\"']|$))"
_DISTRIBUTED = _AS_NAME % {b"name": b"distributed"} + rb"|Distributed[A-Z]|_distributed|distributed_"
_COMMUNICATION = _AS_NAME % {b"name": b"communication"} + rb"|comm_func|comm_ops|parallel_context"
_OPS = "mindspore.ops"  # a module with much else
_OPERATORS = ("gather", "scatter")  # names that it has for operators on tensors
_ROOTS = {
    "torch": (b"torch", re.compile(rb"\btorch\b")),
    "paddle": (b"paddle", re.compile(rb"\bpaddle(?:_[23])?\b")),
    "mindspore": (b"mindspore", re.compile(rb"\bmindspore\b")),
}
_WORDS = {"torch": _DISTRIBUTED + rb"|c10d", "paddle": _DISTRIBUTED, "mindspore": _DISTRIBUTED + rb"|" + _COMMUNICATION}
# A launcher as one word or, in lists of arguments, as two.
_LAUNCHERS = {
    "torch": re.compile(rb"torchrun|torch\.distributed\.(?:run|launch)"),
    "paddle": re.compile(rb"paddle\.distributed\.launch|fleetrun"),
    "mindspore": re.compile(rb"msrun"),
}
_ANY_LAUNCHER = re.compile(rb"mpirun|mpiexec|shim\W{1,12}run")


def mentions_api(content: bytes | mmap, framework: str) -> bool:
    """Whether a Python file with this *content* can use the collective API of *framework*: torch, paddle or mindspore."""
    literal, root = _ROOTS[framework]
    return (
        content.find(literal) >= 0
        and root.search(content) is not None
        and _words(framework).search(content) is not None
    )


def mentions_launcher(content: bytes | mmap, framework: str) -> bool:
    """Whether a file with this *content* can have a launch line of *framework*, of MPI or of ``shim run``."""
    return (_LAUNCHERS[framework].search(content) or _ANY_LAUNCHER.search(content)) is not None


@cache
def _words(framework: str) -> re.Pattern[bytes]:
    """Return what a file that uses the API of *framework* has besides the framework's name."""
    own = [name for api in APIS.values() if api.framework == framework for name in api.names]
    # Without a module's name, which prose has too.
    single = {name.rpartition(".")[2].encode() for name in own} - {b"distributed"}
    words = _WORDS[framework] + rb"|\b(?:" + b"|".join(sorted(single)) + rb")\b"
    if framework != "mindspore":
        return re.compile(words)
    modules = record.read(record.FRONTENDS["shim.frontends.mindspore"]).modules
    names = {name for module, names in modules.items() if module.startswith(_OPS) for name in names} - {*_OPERATORS}
    return re.compile(words + b"|" + _AS_NAME % {b"name": b"(?:" + "|".join(sorted(names)).encode() + b")"})
