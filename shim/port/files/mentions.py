"""Whether a file can have anything to port: a search in its bytes, which takes a thousandth of the time that parsing takes.

It may find too much and must not miss anything: a name of the framework's API stands in the file that uses it, and so does the name of the
framework itself. The words of licences are left out, for they stand at the top of very many files ("software distributed under the License is
distributed on ..."): no code has such a name before such a word.
"""

from __future__ import annotations

import re

__all__ = ["mentions_api", "mentions_launcher"]

_DISTRIBUTED = rb"[dD]istributed(?![ \t]+(?:under|on)\b)"
_OF_MINDSPORE = (  # mindspore.ops also has the primitives and functions themselves
    rb"communication|comm_|parallel_context|process_group|new_group|TCPStore|P2POp|is_(?:available|initialized)"
    rb"|get_(?:rank|world_size|backend|global_rank|group_rank)|(?:all|gather|scatter)_|All(?:Reduce|Gather|ToAll)|AlltoAll"
    rb"|[rR]educe|[bB]roadcast|[bB]arrier|[sS]end|[rR]ecv|Receive|Collective|NeighborExchange"
)
_ROOTS = {
    "torch": (b"torch", re.compile(rb"\btorch\b")),
    "paddle": (b"paddle", re.compile(rb"\bpaddle(?:_[23])?\b")),
    "mindspore": (b"mindspore", re.compile(rb"\bmindspore\b")),
}
_WORDS = {
    "torch": re.compile(_DISTRIBUTED + rb"|DataParallel|c10d"),
    "paddle": re.compile(_DISTRIBUTED + rb"|DataParallel"),
    "mindspore": re.compile(_DISTRIBUTED + rb"|" + _OF_MINDSPORE),
}
# A launcher as one word or, in lists of arguments, as two.
_LAUNCHERS = {
    "torch": re.compile(rb"torchrun|torch\.distributed\.(?:run|launch)"),
    "paddle": re.compile(rb"paddle\.distributed\.launch|fleetrun"),
    "mindspore": re.compile(rb"msrun"),
}
_ANY_LAUNCHER = re.compile(rb"mpirun|mpiexec|shim\W{1,12}run")


def mentions_api(content: bytes, framework: str) -> bool:
    """Whether a Python file with this *content* can use the collective API of *framework*: torch, paddle or mindspore."""
    literal, root = _ROOTS[framework]
    return literal in content and root.search(content) is not None and _WORDS[framework].search(content) is not None


def mentions_launcher(content: bytes, framework: str) -> bool:
    """Whether a file with this *content* can have a launch line of *framework*, of MPI or of ``shim run``."""
    return (_LAUNCHERS[framework].search(content) or _ANY_LAUNCHER.search(content)) is not None
