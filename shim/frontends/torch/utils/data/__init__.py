"""The part of ``torch.utils.data`` that asks which rank this is."""

from __future__ import annotations

from typing import Any

from shim.frontends.torch.utils.data._made_later import class_of

__all__ = ["DistributedSampler"]

DistributedSampler: type[Any]  # derives from torch's, which is not imported before somebody asks for it


def __getattr__(name: str) -> Any:
    return class_of(__name__, name)
