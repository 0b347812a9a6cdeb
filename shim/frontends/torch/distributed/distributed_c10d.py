"""The names of ``torch.distributed.distributed_c10d``, where code that needs torch's internals finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent, _releases
from shim.frontends.torch._calls.coalescing_blocks import _CollOp, _IllegalWork
from shim.frontends.torch._groups.parts import SHRINK_ABORT, SHRINK_DEFAULT
from shim.frontends.torch._methods.call_options import AllgatherOptions
from shim.frontends.torch.distributed._functions import *  # noqa: F403  # what it lists
from shim.frontends.torch.distributed._functions import __all__ as _names
from shim.frontends.torch.distributed._internals import *  # noqa: F403
from shim.frontends.torch.distributed._internals import __all__ as _internal_names
from shim.frontends.torch.distributed._tensor_checks import *  # noqa: F403
from shim.frontends.torch.distributed._tensor_checks import __all__ as _tensor_check_names

__all__ = [
    *_names,
    *_internal_names,
    *_tensor_check_names,
    "SHRINK_ABORT",
    "SHRINK_DEFAULT",
    "AllgatherOptions",
    "_CollOp",
    "_IllegalWork",
]

_releases.follow(globals())

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where torch's module has it."""
        _absent.refuse_name(__name__, name)
