"""PyTorch's collective-communication API, at the signatures of the torch that is followed, see docs/releases.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent
from shim.frontends.torch._absent_names import ABSENT

_absent.explain_absent(__name__, ABSENT)

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where torch has it."""
        _absent.refuse_name(__name__, name)
