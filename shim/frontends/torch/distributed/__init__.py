"""``torch.distributed`` over this project's engine: ``import shim.frontends.torch.distributed as dist``.

Deviates: every tensor that a call writes counts as written in place, so a backward that needs its old elements raises
RuntimeError; torch 2.13 counts only some of them: all_reduce, broadcast, scatter, all_to_all_single and receives silently
give a wrong gradient. A graph of ``torch.compile`` ends at each function of this module; torch puts some of them into the
graph. The functions of ``_functional_collectives`` stand in it here too.
See: https://docs.pytorch.org/docs/2.15/distributed.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent, _releases
from shim.frontends.torch.distributed import distributed_c10d
from shim.frontends.torch.distributed._functions import *  # noqa: F403  # what it lists
from shim.frontends.torch.distributed._functions import __all__ as _names
from shim.frontends.torch.distributed._lifecycle import is_available

__all__ = [
    *_names,
    "distributed_c10d",
    "is_available",
]

_releases.follow(globals())

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where torch's module has it."""
        _absent.refuse_name(__name__, name)
