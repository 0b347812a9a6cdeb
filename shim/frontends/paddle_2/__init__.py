"""PaddlePaddle's collective-communication API, at the signatures of paddle 2.6.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent
from shim.frontends._paddle.absent_names import ABSENT
from shim.frontends._paddle.training import layer_class

__all__ = ["DataParallel"]

DataParallel: type[Any]  # a layer of paddle's, which is not imported before somebody asks for it
_absent.explain_absent(__name__, ABSENT)

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        return layer_class(__name__, name)
