"""``mindspore.ops``: only the communication primitives, and the functions of ``ops.communication``.

A primitive is made once, with its group, and called with tensors; ``_primitive`` says how that goes together with
MindSpore's gradients and compiled graphs.

Deviates: compiled graphs take only non-empty tensors with known shapes and at least one dimension, have first derivatives
only, and cannot be made by tracing; an error in a running graph is raised some 3 seconds late, and MindSpore does not run
that graph again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent, _releases
from shim.frontends.mindspore.ops.communication._functions import *  # noqa: F403  # all that it lists
from shim.frontends.mindspore.ops.communication._functions import __all__ as _functions
from shim.frontends.mindspore.ops.operations.comm_ops import *  # noqa: F403  # all that it lists
from shim.frontends.mindspore.ops.operations.comm_ops import __all__ as _primitives

__all__ = [*_primitives, *_functions]

_releases.follow(globals())

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where MindSpore has it."""
        _absent.refuse_name(__name__, name)
