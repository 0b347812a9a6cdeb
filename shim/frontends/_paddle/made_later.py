"""The classes that derive from Paddle's own, which are made when somebody asks for them, as paddle is imported then."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["class_of"]

_MODULES = {"DataParallel": "data_parallel", "DistributedBatchSampler": "batch_sampler"}


def class_of(module: str, name: str, offered: str) -> Any:
    """Return the class *name* for *module*, where it is the one *offered*, which is all that is made when it is asked for."""
    if name != offered:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    importlib.import_module("paddle")
    return getattr(importlib.import_module(f"shim.frontends._paddle.{_MODULES[name]}"), name)
