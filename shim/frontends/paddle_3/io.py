"""The part of ``paddle.io`` of paddle 3 that asks which rank this is."""

from __future__ import annotations

from typing import Any

from shim.frontends._paddle.made_later import class_of

__all__ = ["DistributedBatchSampler"]

DistributedBatchSampler: type[Any]  # derives from paddle's, which is not imported before somebody asks for it


def __getattr__(name: str) -> Any:
    return class_of(__name__, name, "DistributedBatchSampler")
