"""PaddlePaddle's collective-communication API, at the signatures of paddle 3.3.1."""

from __future__ import annotations

from typing import Any

from shim.frontends._paddle.layers import layer_class

__all__ = ["DataParallel"]

DataParallel: type[Any]  # a layer of paddle's, which is not imported before somebody asks for it


def __getattr__(name: str) -> Any:
    return layer_class(__name__, name)
