"""``mindspore.nn``: the cell that reduces gradients over the ranks. It is made when somebody asks for it, as MindSpore is imported then."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shim.frontends import _absent

__all__ = ["DistributedGradReducer"]

DistributedGradReducer: type[Any]  # a cell of MindSpore's

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        if name != "DistributedGradReducer":
            _absent.refuse_name(__name__, name)
        importlib.import_module("mindspore.ops")
        return importlib.import_module("shim.frontends.mindspore._training.grad_reducer").DistributedGradReducer
